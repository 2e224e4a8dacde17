//go:build amd64 || arm64

package main

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// calls are those that TestRefused has the system refuse.
var calls = map[string]uintptr{
	"accept4": syscall.SYS_ACCEPT4, "bind": syscall.SYS_BIND, "connect": syscall.SYS_CONNECT, "fallocate": syscall.SYS_FALLOCATE,
	"flock": syscall.SYS_FLOCK, "getsockopt": syscall.SYS_GETSOCKOPT, "listen": syscall.SYS_LISTEN,
	"prctl": syscall.SYS_PRCTL, "setpgid": syscall.SYS_SETPGID, "socket": syscall.SYS_SOCKET,
}

// An error says which call the system has refused.
func TestRefused(t *testing.T) {
	for call := range calls {
		j := command("refuse", "-n", "2")
		j.Env = append(j.Env, envRun+"=", "TEST_CALL="+call)
		require.NoError(t, j.Start())
		status := j.status(t)
		if status == 99 {
			t.Skip(j.errs.String())
		}
		require.NotZero(t, status, call)
		require.Regexp(t, `\b`+call+`\b.*: operation not permitted`, j.errs.String(), "%s: status %d", call, status)
	}
}

func init() {
	programs["refuse"] = func() { // becomes mpicxrun and the program sum, to which the system refuses TEST_CALL
		runtime.LockOSThread()
		if err := refuse(calls[os.Getenv("TEST_CALL")]); err != nil {
			fmt.Fprintln(os.Stderr, "seccomp:", err)
			os.Exit(99)
		}
		_, _ = os.Setenv(envRun, "1"), os.Setenv(envProgram, "sum")
		fmt.Fprintln(os.Stderr, syscall.Exec(os.Args[0], os.Args, os.Environ()))
	}
}

// refuse makes a call fail in this thread and in what it starts.
func refuse(call uintptr) error {
	const (
		load, jumpIfEqual, end = 0x20, 0x15, 0x06
		fail, allow            = 0x50000 | uint32(syscall.EPERM), 0x7fff0000
		noNewPrivileges        = 38
		seccomp, filter        = 22, 2
	)
	type instruction struct {
		code   uint16
		jt, jf uint8
		k      uint32
	}
	program := []instruction{{load, 0, 0, 0}, {jumpIfEqual, 0, 1, uint32(call)}, {end, 0, 0, fail}, {end, 0, 0, allow}}
	header := struct {
		n     uint16
		first *instruction
	}{uint16(len(program)), &program[0]}
	if _, _, err := syscall.RawSyscall6(syscall.SYS_PRCTL, noNewPrivileges, 1, 0, 0, 0, 0); err != 0 {
		return err
	}
	if _, _, err := syscall.RawSyscall6(syscall.SYS_PRCTL, seccomp, filter, uintptr(unsafe.Pointer(&header)), 0, 0, 0); err != 0 {
		return err
	}
	return nil
}
