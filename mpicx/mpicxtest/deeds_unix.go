//go:build unix

package mpicxtest

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

var signals = map[string]syscall.Signal{
	"SIGKILL": syscall.SIGKILL, "SIGTERM": syscall.SIGTERM, "SIGINT": syscall.SIGINT, "SIGHUP": syscall.SIGHUP, "SIGQUIT": syscall.SIGQUIT,
	"SIGABRT": syscall.SIGABRT, "SIGSEGV": syscall.SIGSEGV, "SIGBUS": syscall.SIGBUS, "SIGPIPE": syscall.SIGPIPE,
}

// killBy sends this process a signal that a plan may name; "" is SIGKILL.
func killBy(name string) error { return syscall.Kill(os.Getpid(), signals[cmp.Or(name, "SIGKILL")]) }

// stop stops this process for d. Another process continues it, repeatedly, because it may be slow
// to stop.
func stop(d time.Duration) error {
	c := exec.Command("sh", "-c", fmt.Sprintf("sleep %f; while kill -CONT %d; do sleep 0.01; done", d.Seconds(), os.Getpid()))
	if err := c.Start(); err != nil {
		return err
	}
	defer func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	}()
	begin := time.Now()
	if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
		return err
	}
	for time.Since(begin) < d { // other threads may have stopped before this one
		time.Sleep(time.Millisecond)
	}
	return nil
}
