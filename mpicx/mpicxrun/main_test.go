//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/internal/machine"
	"github.com/mpicx/go-mpicx/mpicx"
)

// In these tests this binary is mpicxrun, and the program that it starts.
const (
	envRun     = "MPICXRUN_TEST_RUN"
	envProgram = "MPICXRUN_TEST_PROGRAM"
)

func TestMain(m *testing.M) {
	switch program := os.Getenv(envProgram); {
	case os.Getenv(envRun) != "":
		_ = os.Unsetenv(envRun)
		machine.AnswerTime = time.Hour // a busy machine may be slow
		main()
	case program != "":
		programs[program]()
	default:
		os.Exit(m.Run())
	}
}

// ulfm is the option with which a program survives deaths, in these tests with any tags.
func ulfm() mpicx.Option { return hook.Backend[mpicx.Option]("ulfm") }

func blackChannel() mpicx.Option { return hook.Backend[mpicx.Option]("blackchannel") }

// rank is mpicx.Run, which ends the process if it fails.
func rank(fn func(ctx context.Context, world *mpicx.Comm) error, opts ...mpicx.Option) {
	must(mpicx.Run(context.Background(), fn, opts...))
}

// must ends the process if there is an error.
func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A job is a mpicxrun under way.
type job struct {
	*exec.Cmd
	out, errs lockedBuffer
}

// command is mpicxrun, which starts a program of programs.
func command(program string, args ...string) *job {
	j := &job{Cmd: exec.Command(os.Args[0], args...)}
	j.Args = append(j.Args, os.Args[0])
	j.Env = append(os.Environ(), envRun+"=1", envProgram+"="+program)
	j.Stdout, j.Stderr = &j.out, &j.errs
	return j
}

func start(t *testing.T, program string, args ...string) *job {
	t.Helper()
	j := command(program, args...)
	require.NoError(t, j.Start())
	t.Cleanup(func() { _ = j.Process.Kill() })
	return j
}

// with starts a program in n processes, with arguments.
func with(t *testing.T, program, n string, args ...string) *job {
	t.Helper()
	j := command(program, "-n", n)
	j.Args = append(j.Args, args...)
	require.NoError(t, j.Start())
	return j
}

// under starts j by another program, whose last arguments are j.
func (j *job) under(t *testing.T, name string, args ...string) *job {
	t.Helper()
	path, err := exec.LookPath(name)
	require.NoError(t, err)
	j.Path, j.Args = path, slices.Concat([]string{name}, args, j.Args)
	require.NoError(t, j.Start())
	return j
}

// send sends mpicxrun a signal.
func (j *job) send(t *testing.T, s os.Signal) {
	t.Helper()
	require.NoError(t, j.Process.Signal(s))
}

// ends checks how mpicxrun ends.
func (j *job) ends(t *testing.T, want int) {
	t.Helper()
	require.Equal(t, want, j.status(t), "%s", &j.errs)
}

// kill ends this process at once.
func kill() error {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// status waits for the end of mpicxrun.
func (j *job) status(t *testing.T) int {
	t.Helper()
	over := time.AfterFunc(patience, func() {
		_ = j.Process.Signal(syscall.SIGQUIT)
		time.AfterFunc(5*time.Second, func() { _ = j.Process.Kill() })
	})
	_ = j.Wait()
	require.True(t, over.Stop(), "mpicxrun has not ended; it wrote\n%s%s", &j.out, &j.errs)
	return j.ProcessState.ExitCode()
}

// runToEnd runs a program to its end.
func runToEnd(t *testing.T, program string, args ...string) (status int, out, errs string) {
	t.Helper()
	j := start(t, program, args...)
	status = j.status(t)
	return status, j.out.String(), j.errs.String()
}

// says waits until a process has written a line, n times.
func (j *job) says(t *testing.T, line string, n int) {
	t.Helper()
	said := func() bool { return strings.Count(j.out.String(), line) >= n }
	require.Eventually(t, said, 2*time.Minute, time.Millisecond, "%d times %q is not in\n%s%s", n, line, &j.out, &j.errs)
}

// pids are those that the processes have written, "pid" and rank and number.
func (j *job) pids(t *testing.T, n int) []int {
	t.Helper()
	j.says(t, "pid ", n)
	j.says(t, "\n", n)
	pids := make([]int, n)
	for line := range strings.Lines(j.out.String()) {
		var r, pid int
		if _, err := fmt.Sscanf(line, "pid %d %d", &r, &pid); err == nil {
			pids[r] = pid
		}
	}
	return pids
}

// gone waits until a process is no more.
func gone(t *testing.T, pid int) {
	t.Helper()
	ended := func() bool {
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return syscall.Kill(pid, 0) != nil || bytes.Contains(stat, []byte(") Z ")) // nobody has waited for it
	}
	require.Eventually(t, ended, 2*time.Minute, time.Millisecond, "process %d lives", pid)
}

func printPid(world *mpicx.Comm) { fmt.Printf("pid %d %d\n", world.Rank(), os.Getpid()) }

// patience is for how long a mpicxrun may run.
var patience = 5 * time.Minute

func init() {
	if d, err := time.ParseDuration(os.Getenv("TEST_PATIENCE")); err == nil {
		patience = d
	}
}

// lockedBuffer is a bytes.Buffer that is read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
