//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Under the black channel a death ends the job: the others' Runs say who has died, and those
// that do not return are ended.
func TestDeathEndsTheJob(t *testing.T) {
	for victim := range 3 {
		j := start(t, "rounds", "-n", "3")
		pids := j.pids(t, 3)
		require.NoError(t, syscall.Kill(pids[victim], syscall.SIGKILL))
		j.ends(t, 137)
		require.Equal(t, 2, strings.Count(j.errs.String(), fmt.Sprintf("corrupted by rank %d: its process has died", victim)), "%s", &j.errs)
		require.Contains(t, j.errs.String(), fmt.Sprintf("mpicxrun: rank %d has died: signal: killed; the others can't continue without it", victim))
		require.NotContains(t, j.out.String(), "survivors")
	}
}

func TestDeathEndsThoseThatCompute(t *testing.T) {
	for _, deaf := range []string{"", "1"} {
		t.Setenv("TEST_DEAF", deaf)
		j := start(t, "computing", "-n", "3")
		pids := j.pids(t, 3)
		require.NoError(t, syscall.Kill(pids[1], syscall.SIGSEGV))
		require.NotZero(t, j.status(t))
		for _, pid := range pids {
			gone(t, pid)
		}
	}
}

// With ulfm the others survive, and the job has succeeded.
func TestDeathSurvived(t *testing.T) {
	t.Setenv("TEST_BACKEND", "ulfm")
	for n := 2; n <= 5; n++ {
		j := start(t, "rounds", "-n", fmt.Sprint(n))
		pids := j.pids(t, n)
		left := n / 2
		for r, pid := range pids {
			if r != left {
				require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
			}
		}
		j.send(t, syscall.SIGTERM)
		j.ends(t, 0)
		require.Contains(t, j.out.String(), fmt.Sprintf("rank %d: 1 survivors", left))
		require.Equal(t, n-1, strings.Count(j.errs.String(), "has died: signal: killed"), "%s", &j.errs)
		require.Contains(t, j.out.String(), fmt.Sprintf(" of %d has ended: signal: killed", n))
	}
}

// A process that is stopped has not died.
func TestStopped(t *testing.T) {
	t.Setenv("TEST_BACKEND", "ulfm")
	j := start(t, "rounds", "-n", "3")
	pids := j.pids(t, 3)
	require.NoError(t, syscall.Kill(pids[1], syscall.SIGSTOP))
	time.Sleep(300 * time.Millisecond)
	require.NoError(t, syscall.Kill(pids[1], syscall.SIGCONT))
	j.send(t, syscall.SIGTERM)
	j.ends(t, 0)
	require.Equal(t, 3, strings.Count(j.out.String(), "3 survivors"))
}

// To exit in the middle of Run is to die, with any status.
func TestExit(t *testing.T) {
	for _, test := range []struct {
		backend string
		status  string
		want    int
	}{{"", "0", 1}, {"", "3", 3}, {"ulfm", "0", 0}, {"ulfm", "3", 0}} {
		t.Setenv("TEST_BACKEND", test.backend)
		j := with(t, "exits", "3", test.status)
		j.ends(t, test.want)
		require.Contains(t, j.errs.String(), "rank 1 has died: exit status "+test.status)
		require.Equal(t, 2, strings.Count(j.out.String(), "rank 1 of 3 has ended: exit status "+test.status+"\n"), &j.out)
	}
}

// Processes that do not come keep nobody waiting once they have ended, nor longer than the
// deadline of Run.
func TestWhoDoesNotCome(t *testing.T) {
	for _, test := range []struct {
		backend string
		args    []string
		want    int
		begins  int
		text    string
	}{
		{"", []string{"run", "0", "run"}, 1, 0, "corrupted by rank 1: its process has died"},
		{"", []string{"run", "3", "run"}, 3, 0, "corrupted by rank 1: its process has died"},
		{"ulfm", []string{"run", "0", "run"}, 0, 2, ""},
		{"ulfm", []string{"3", "run", "run"}, 0, 2, ""},
		{"ulfm", []string{"3", "4", "run"}, 0, 1, ""},
		{"", []string{"deadline", "sleep", "deadline"}, 1, 0, `processes \[(0 )?1( 2)?\] have not come`}, // the other may be late
	} {
		t.Setenv("TEST_BACKEND", test.backend)
		j := with(t, "each", "3", test.args...)
		j.ends(t, test.want)
		require.Regexp(t, test.text, j.errs.String())
		if test.backend != "" {
			require.Equal(t, test.begins, strings.Count(j.out.String(), "begins"), "%v", test)
		}
	}
}

// When mpicxrun is killed so are the processes, and what is between.
func TestNoOrphans(t *testing.T) {
	var launchers []int
	for _, test := range [][]string{{"forever"}, {"forever", "ulfm"}, {"each", "sleep", "sleep"}, {"forever", "wrapped"}} {
		j := command(test[0], "-n", "2")
		switch test[len(test)-1] {
		case "wrapped": // by a process that sees nothing
			program := j.Args[len(j.Args)-1]
			j.Args = append(j.Args[:len(j.Args)-1], "sh", "-c", program+" & wait")
		case "ulfm":
			j.Env = append(j.Env, "TEST_BACKEND=ulfm")
		default:
			j.Args = append(j.Args, test[1:]...)
		}
		require.NoError(t, j.Start())
		pids := j.pids(t, 2)
		launchers = append(launchers, j.Process.Pid)
		require.NoError(t, j.Process.Kill())
		_ = j.Wait()
		for _, pid := range pids {
			gone(t, pid)
		}
	}
	leaveNothing(t, launchers...)
}

// leaveNothing checks that the next job removes what is left of those of which not all processes
// have come.
func leaveNothing(t *testing.T, launchers ...int) {
	_, _, errs := runToEnd(t, "sum", "-n", "1")
	for _, in := range []string{"/dev/shm", os.TempDir()} {
		for _, pid := range launchers {
			left, err := filepath.Glob(filepath.Join(in, fmt.Sprintf("mpicxrun-*-%d-*", pid)))
			require.NoError(t, err)
			require.Empty(t, left, errs)
		}
	}
}

// Signals are passed on, once each.
func TestSignals(t *testing.T) {
	j := start(t, "signals", "-n", "3", "-grace", "0")
	pids := j.pids(t, 3)
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGUSR1, syscall.SIGTERM} {
		j.send(t, s)
		for r := range pids {
			j.says(t, fmt.Sprintf("rank %d: %v\n", r, s), 1)
		}
	}
	j.ends(t, 0)
	require.Equal(t, 3, strings.Count(j.out.String(), "interrupt"))
}

// A signal that asks the job to end, and has ended a process, is the job's status, even if another
// process has learned of that death before the signal came to it, and has returned.
func TestInterrupted(t *testing.T) {
	for _, how := range []string{"ulfm 0", "ulfm 1", "blackchannel"} {
		backend, status, _ := strings.Cut(how, " ")
		t.Setenv("TEST_BACKEND", backend)
		t.Setenv("TEST_STATUS", status)
		for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGHUP, syscall.SIGTERM} {
			if signal.Ignored(s) { // nohup runs this test, and mpicxrun ignores it too
				continue
			}
			j := start(t, "forever", "-n", "3")
			j.pids(t, 3)
			j.send(t, s)
			j.ends(t, 128+int(s))
		}
	}
}

// Ctrl-Z stops all, and fg has them continue.
func TestJobControl(t *testing.T) {
	if _, err := exec.LookPath("ps"); err != nil {
		t.Skip(err)
	}
	j := start(t, "rounds", "-n", "2")
	pids := append(j.pids(t, 2), j.Process.Pid)
	j.send(t, syscall.SIGTSTP)
	for _, pid := range pids {
		stopped := func() bool {
			out, _ := exec.Command("ps", "-o", "stat=", "-p", fmt.Sprint(pid)).Output()
			return strings.HasPrefix(string(out), "T")
		}
		require.Eventually(t, stopped, 2*time.Minute, time.Millisecond, "process %d", pid)
	}
	j.send(t, syscall.SIGCONT)
	j.send(t, syscall.SIGTERM)
	j.ends(t, 0)
}

// A child that a rank leaves behind, which has its output, keeps nobody waiting.
func TestChildThatStays(t *testing.T) {
	for _, args := range [][]string{{"-n", "2"}, {"-n", "2", "-label"}} {
		j := command("child that stays", args...)
		f, err := os.CreateTemp(t.TempDir(), "")
		require.NoError(t, err)
		j.Stdout, j.Stderr = f, f
		require.NoError(t, j.Start())
		j.ends(t, 0)
		out, err := os.ReadFile(f.Name())
		require.NoError(t, err)
		require.Equal(t, 2, strings.Count(string(out), "pid "))
		for line := range strings.Lines(string(out)) {
			var r, pid int
			_, err := fmt.Sscanf(line[strings.Index(line, "pid"):], "pid %d %d", &r, &pid)
			require.NoError(t, err)
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// loseReader starts the job, and closes its output once it has begun to write.
func (j *job) loseReader(t *testing.T) {
	j.Stdout = nil
	out, err := j.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, j.Start())
	_, err = out.Read(make([]byte, 1))
	require.NoError(t, err)
	require.NoError(t, out.Close())
}

// Output that nobody reads ends those who write it.
func TestNobodyReads(t *testing.T) {
	for _, args := range [][]string{{"-n", "2"}, {"-n", "2", "-label"}} {
		j := command("", append(args, "sh", "-c", "while echo y; do :; done; exit 9")...)
		j.Args = j.Args[:len(j.Args)-1]
		j.loseReader(t)
		require.Contains(t, []int{9, 128 + int(syscall.SIGPIPE)}, j.status(t), "%s", &j.errs)
	}
}

// Without any of its three files a job continues.
func TestNoFiles(t *testing.T) {
	command("instance", "-n", "2").under(t, "sh", "-c", `"$0" "$@" <&- >&- 2>&-`).ends(t, 0)
}

// Where there is no room for memory the job says so, or has it elsewhere.
func TestNoRoom(t *testing.T) {
	script := `mount -t tmpfs -o size=100k none /dev/shm && "$0" "$@"`
	if exec.Command("unshare", "-m", "sh", "-c", "mount -t tmpfs none /dev/shm").Run() != nil {
		t.Skip("needs the right to mount")
	}
	j := command("sum", "-n", "4").under(t, "unshare", "-m", "sh", "-c", script)
	j.ends(t, 0)
	require.Equal(t, 4, strings.Count(j.out.String(), "of 4: 10, node"))
	j = command("sum", "-n", "4")
	j.Env = append(j.Env, "TMPDIR="+t.TempDir())
	j.under(t, "unshare", "-m", "sh", "-c", "mount -t tmpfs -o size=100k none $TMPDIR && "+script).ends(t, 125)
	require.Contains(t, j.errs.String(), "no space left on device")
}
