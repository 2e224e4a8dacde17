//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package machine

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/bell"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/node"
	"github.com/mpicx/go-mpicx/internal/transport/transporttest"
)

// part is this process's part in the job, if TestProcesses has started it.
var part *node.Job

func TestMain(m *testing.M) {
	place, err := Started()
	if place == nil && err == nil {
		os.Exit(m.Run())
	}
	if err == nil {
		part, err = Begin(context.Background(), place, false)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() { // progress, as waiting goroutines would make it
		defer close(stopped)
		part.World().(transport.Driver).Await(awake{}, stop)
	}()
	code := m.Run()
	close(stop)
	<-stopped
	if err := part.End(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// awake is never woken.
type awake struct{}

func (awake) Woken() bool            { return false }
func (awake) Sleep() <-chan struct{} { return nil }
func (awake) Rise()                  {}

// TestConformance runs the suite of all transports, in every process of the job.
func TestConformance(t *testing.T) {
	if part == nil {
		t.Skip("TestProcesses runs it, in processes")
	}
	var made uint64
	transporttest.Run(t, func(t *testing.T, body func(*testing.T, transport.Comm)) {
		made++
		c, err := part.World().Sub(transport.Name{Seq: made}, nil)
		require.NoError(t, err)
		body(t, c)
	})
}

// Real processes pass the suite of all transports.
func TestProcesses(t *testing.T) {
	for _, n := range []int{1, 2, 3} {
		if n > runtime.NumCPU() && os.Getenv("MPICX_NIGHTLY") == "" {
			continue // this takes some minutes
		}
		j, err := NewJob(n, 0)
		require.NoError(t, err)
		commands, out := make([]*exec.Cmd, n), make([]bytes.Buffer, n)
		for r := range commands {
			commands[r] = exec.Command(os.Args[0], "-test.run=^TestConformance$", "-test.failfast", fmt.Sprint("-test.timeout=", 5*time.Minute), "-test.v")
			commands[r].Stdout, commands[r].Stderr = &out[r], &out[r]
		}
		outcomes, err := j.Run(func(rank int) *exec.Cmd { return commands[rank] }, nil, func(text string) { t.Log(text) })
		j.Close()
		require.NoError(t, err)
		for r, o := range outcomes {
			require.Zero(t, o.Status(), "%d processes, %d: %s", n, r, &out[r])
			require.Contains(t, out[r].String(), "--- PASS: TestConformance/")
		}
		require.NoDirExists(t, j.dir)
	}
}

// The others learn of a process's end at once, even if a child that it has left behind holds its
// output open.
func TestEndBeforeItsOutput(t *testing.T) {
	j, err := NewJob(2, 0)
	require.NoError(t, err)
	defer j.Close()
	child := filepath.Join(t.TempDir(), "child")
	scripts := []string{
		`sleep 300 & echo $! >"$1"; echo last words; exit 3`,
		`"$0" -test.run='^$'; kill $(cat "$1")`, // fails unless the job has failed before the child has ended
	}
	out := make([]bytes.Buffer, 2)
	outcomes, err := j.Run(func(rank int) *exec.Cmd {
		c := exec.Command("sh", "-c", scripts[rank], os.Args[0], child)
		c.Stdout, c.Stderr = &out[rank], &out[rank]
		c.WaitDelay = time.Hour
		return c
	}, nil, func(string) {})
	require.NoError(t, err)
	require.Equal(t, 3, outcomes[0].Status())
	require.Zero(t, outcomes[1].Status())
	require.Contains(t, out[1].String(), "process 0 has died")
	require.Equal(t, "last words\n", out[0].String())
}

// Processes that sleep are woken when the launcher notes the end of one that no other sees.
func TestEndWakesSleepers(t *testing.T) {
	j, err := NewJob(1, 1)
	require.NoError(t, err)
	defer j.Close()
	sleeper := bell.New(j.shared)
	sleeper.Arm()
	j.ended(1)
	require.False(t, sleeper.Armed())
}

// A process that has left still passes messages on. Its end is a death unless all have left:
// then the job ends in this way.
func TestEndOfWhoHasLeft(t *testing.T) {
	f := &fabric{Place: Place{size: 3}, roster: rosterOf(make([]byte, rosterSize(3)), 3), wake: func() {}}
	f.roster.begin(3)
	for r, s := range []state{left, mortal, mortal} {
		f.roster.set(r, s)
	}
	f.end(0)
	require.Equal(t, []int{0}, f.roster.dead())
	f.roster.set(1, left)
	f.roster.set(2, left)
	f.end(1)
	require.Equal(t, []int{0}, f.roster.dead())
}

// A process that the others still need when it has left has died, and its end is the job's status,
// though the system reports the end of another before.
func TestStatusOfWhoHasLeft(t *testing.T) {
	for _, since := range []state{fragile, left} { // of the other, after it has seen the death
		j, err := NewJob(2, 0)
		require.NoError(t, err)
		defer j.Close()
		j.roster.set(0, left)
		j.roster.seen(0) // by 1, which ends for that
		j.roster.set(1, since)
		lives := filepath.Join(t.TempDir(), "lives")
		require.NoError(t, syscall.Mkfifo(lives, 0o600))
		scripts := []string{
			`read _ <"$0"; kill -9 $$`,
			`exec 3>"$0"; exit 1`,
		}
		var said []string
		outcomes, err := j.Run(func(rank int) *exec.Cmd { return exec.Command("sh", "-c", scripts[rank], lives) }, nil, func(text string) { said = append(said, text) })
		require.NoError(t, err)
		require.Equal(t, 128+9, Status(outcomes), "%v", since)
		require.Equal(t, []string{"rank 0 has died: signal: killed; the others can't continue without it"}, said)
	}
}

// A process may be killed after it has noted a death on the roster, and before it has counted it.
// The others see the next death nevertheless.
func TestDeathThatIsNotCounted(t *testing.T) {
	b := rosterOf(make([]byte, rosterSize(3)), 3)
	f := &fabric{roster: b}
	b.processes[0].death.Store(1)
	dead, err := f.Failed()
	require.NoError(t, err)
	require.Equal(t, []int{0}, dead)
	b.seen(2)
	_, died := f.Poll(nil, 1)
	require.True(t, died)
	dead, err = f.Failed()
	require.NoError(t, err)
	require.Contains(t, dead, 2)
}

// What has ended a process is explained as far as it is known.
func TestWhy(t *testing.T) {
	for _, row := range []struct {
		script   string
		byKernel bool
		want     string
	}{
		{"exit 3", false, "exit status 3"},
		{"exit 2", false, "exit status 2, as of a panic, a fatal error of Go's runtime or SIGQUIT"},
		{"exit 139", false, "exit status 139, as of a shell whose program was ended by a signal: segmentation fault"},
		{"kill -9 $$", false, "signal: killed"},
		{"kill -9 $$", true, `signal: killed, by the kernel for memory: \d+ MiB resident`},
	} {
		c := exec.Command("sh", "-c", row.script)
		require.Error(t, c.Run())
		require.Regexp(t, "^"+row.want+"$", explain(c.ProcessState, row.byKernel))
	}
	file := filepath.Join(t.TempDir(), "memory.events")
	require.NoError(t, os.WriteFile(file, []byte("oom 9\noom_kill 7\noom_group_kill 0\n"), 0o600))
	require.Equal(t, 7, oomKills("/none", file))
}
