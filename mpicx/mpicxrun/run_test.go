//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/buildtags"
)

func sorted(out string) []string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	slices.Sort(lines)
	return lines
}

// A program built without tags has processes for ranks.
func TestProcessesForRanks(t *testing.T) {
	t.Setenv("MPICX_RANKS", "3")           // is of goroutines
	for _, n := range []int{1, 2, 5, 65} { // of more than 64 the rings are smaller
		if n > 5 && (testing.Short() || buildtags.Race) {
			continue
		}
		out, errs := succeeds(t, "sum", "-n", fmt.Sprint(n))
		require.Empty(t, errs)
		var want []string
		for r := range n {
			want = append(want, fmt.Sprintf("rank %d of %d: %d, node", r, n, n*(n+1)/2))
		}
		slices.Sort(want)
		require.Equal(t, want, sorted(out))
	}
}

// WithRanks has the first processes for ranks; as under mpirun there can't be more.
func TestWithRanks(t *testing.T) {
	t.Setenv("TEST_RANKS", "2")
	prints(t, "sum", "rank 0 of 2: 3, node", "rank 1 of 2: 3, node")
	t.Setenv("TEST_RANKS", "4")
	refuses(t, "sum", "4 ranks, expected 3 or fewer")
}

// prints checks that a program succeeds in 3 processes, and what they print, in any order.
func prints(t *testing.T, program string, want ...string) (errs string) {
	t.Helper()
	out, errs := succeeds(t, program, "-n", "3")
	require.Equal(t, want, sorted(out))
	return errs
}

// succeeds runs a program to its end, which is a good one.
func succeeds(t *testing.T, program string, args ...string) (out, errs string) {
	t.Helper()
	status, out, errs := runToEnd(t, program, args...)
	require.Zero(t, status, errs)
	return out, errs
}

// refuses checks that a program fails in 3 processes, and what they say.
func refuses(t *testing.T, program, why string) {
	t.Helper()
	status, _, errs := runToEnd(t, program, "-n", "3")
	require.Equal(t, 1, status)
	require.Contains(t, errs, why)
}

// Run can't be called after the job; with an Instance around, it can.
func TestRunTwice(t *testing.T) {
	refuses(t, "twice", "can't begin again")
	prints(t, "instance", "rank 0", "rank 1", "rank 2")
}

// What fails in a call that a rank has left is told, whichever comes first, the failure or the end
// of the program.
func TestLeftToFinalize(t *testing.T) {
	for _, backend := range []string{"blackchannel", "ulfm"} {
		for _, outside := range []string{"", "0"} {
			t.Setenv("TEST_BACKEND", backend)
			t.Setenv("TEST_VICTIM", outside)
			out, _ := succeeds(t, "left to Finalize", "-n", "8")
			require.Regexp(t, `(?s)communicator corrupted.*rank 0: mpicx: rank 0 panicked: no sum|rank 0: mpicx: rank 0 panicked: no sum.*communicator corrupted`, out, backend)
		}
	}
}

// H9: a rank that waits in Run for a call that another one never makes is told so.
func TestCallThatOneNeverMakes(t *testing.T) {
	for _, backend := range []string{"blackchannel", "ulfm"} {
		t.Setenv("TEST_BACKEND", backend)
		status, _, errs := runToEnd(t, "omitted", "-n", "3")
		require.Equal(t, 1, status, backend)
		require.Contains(t, errs, "Barrier: rank 1 has returned", backend)
	}
}

// With Initialize a spare waits in World until it is needed, or not any more. With the black channel
// there are no spares, which the job says once, and the program is the same.
func TestSpareInstance(t *testing.T) {
	for backend, says := range map[string]string{"ulfm": "", "blackchannel": "mpicx: WithSpares(1): spares need -tags ulfm, so this job has none\n"} {
		t.Setenv("TEST_BACKEND", backend)
		require.Equal(t, says, prints(t, "spare", "not needed", "rank 0, incarnation 0", "rank 1, incarnation 0"))
	}
	t.Setenv("TEST_BACKEND", "ulfm")
	t.Setenv("TEST_VICTIM", "1")
	_, out, errs := runToEnd(t, "spare", "-n", "3")
	require.NotContains(t, errs, "mpicx:")
	require.Equal(t, []string{"rank 0, incarnation 0", "rank 1, incarnation 1"}, sorted(out))
}

// A job of which only a spare is left, whose work nobody has done, fails.
func TestSpareAlone(t *testing.T) {
	t.Setenv("TEST_VICTIM", "all")
	for _, program := range []string{"spare alone", "spare"} {
		status, out, errs := runToEnd(t, program, "-n", "3")
		require.NotZero(t, status, program)
		require.Contains(t, errs, "mpicx: Run: all working ranks have ended, and this rank was not taken in: mpicx: processes of ranks [0 1] have died")
		require.NotContains(t, out, "incarnation")
	}
}

// If one process can't record its timeline, all ranks end, with an error that names its directory.
// A spare ends alone.
func TestOneTimelineThatCantBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	t.Setenv("TEST_FILE", file)
	t.Setenv("TEST_DIR", t.TempDir())
	why := fmt.Sprintf("timeline in %q", filepath.Join(file, "below"))
	for _, row := range []string{
		"run blackchannel 0", "run blackchannel 2", "run ulfm 0", "run ulfm 2", "spare ulfm 2",
		"instance blackchannel 0", "instance blackchannel 2", "instance ulfm 0", "instance ulfm 2",
	} {
		t.Run(row, func(t *testing.T) {
			words := strings.Fields(row)
			for i, name := range []string{"TEST_HOW", "TEST_BACKEND", "TEST_VICTIM"} {
				t.Setenv(name, words[i])
			}
			status, out, errs := runToEnd(t, "unrecorded", "-n", "3")
			require.Equal(t, 1, status)
			require.Contains(t, errs, why)
			if words[0] == "spare" {
				require.Equal(t, "told: <nil>\ntold: <nil>\n", out)
				return
			}
			require.Equal(t, 2, strings.Count(out, "told: mpicx: communicator corrupted by rank "+words[2]), out)
			require.Equal(t, 2, strings.Count(out, why), out)
		})
	}
}

// Rank 0 has the input, to its last byte; the others have none.
func TestInput(t *testing.T) {
	want := func(n int) []string { return []string{fmt.Sprintf("rank 0: %d bytes", n), "rank 1: 0 bytes"} }
	j := command("input", "-n", "2")
	j.Stdin = strings.NewReader(strings.Repeat("x", 3_000_000))
	require.NoError(t, j.Start())
	j.ends(t, 0)
	require.Equal(t, want(3_000_000), sorted(j.out.String()))
	out, _ := succeeds(t, "input", "-n", "2") // the null device
	require.Equal(t, want(0), sorted(out))
}

// With -label each line has its rank, and is whole, even the one that has no end.
func TestLabel(t *testing.T) {
	out, _ := succeeds(t, "lines", "-n", "3", "-label")
	next := make([]int, 3)
	for line := range strings.Lines(out) {
		var r int
		_, err := fmt.Sscanf(line, "[%d]", &r)
		require.NoError(t, err, line)
		want := strings.Repeat("x", next[r]%300) + "end"
		if next[r] == 3000 {
			want = "no end of line"
		}
		require.Equal(t, fmt.Sprintf("[%d] %s\n", r, want), line)
		next[r]++
	}
	require.Equal(t, []int{3001, 3001, 3001}, next)
}

// Output that is lost is told, and is no success.
func TestLostOutput(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	r, closed, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, r.Close())
	defer closed.Close()
	for to, why := range map[*os.File]string{full: "no space left on device", closed: "broken pipe"} {
		for program, statuses := range map[string][]int{"sum": {1}, "lines": {1, 128 + int(syscall.SIGPIPE)}} {
			j := command(program, "-n", "2", "-label")
			j.Stdout = to
			require.NoError(t, j.Start())
			require.Contains(t, statuses, j.status(t), program)
			require.Contains(t, j.errs.String(), "mpicxrun: write /dev/stdout: "+why)
		}
	}
}

// The exit status says what has happened.
func TestStatus(t *testing.T) {
	t.Setenv("TEST_BACKEND", "ulfm")
	for _, test := range []struct {
		args []string // the processes end after the job, or have none
		want int
	}{
		{[]string{"run 0", "run 0", "run 0"}, 0},
		{[]string{"run 0", "run 3", "run 0"}, 3},
		{[]string{"run 0", "run kill", "run 0"}, 137},
		{[]string{"run 75", "run 0", "run 75"}, 75},
		{[]string{"run 75", "run 75", "run 3"}, 3},
		{[]string{"0", "0", "0"}, 0},
		{[]string{"0", "0", "4"}, 4},
	} {
		with(t, "each", "3", test.args...).ends(t, test.want)
	}
	for _, test := range []struct {
		args []string
		want int
		text string
	}{
		{nil, 2, "mpicxrun [-n processes]"},
		{[]string{"-n", "x", "true"}, 2, "invalid value"},
		{[]string{"-n", "0", "true"}, 2, "0 processes, expected 1 to 128"},
		{[]string{"-np", "129", "true"}, 2, "129 processes, expected 1 to 128"},
		{[]string{"-respawn", "-1", "-n", "1", "true"}, 2, "1 processes, and -1 later, expected 1 to 128"},
		{[]string{"-np", "2", "-v", "sh", "-c", "kill -9 $$"}, 137, "mpicxrun: rank 1 is process "},
		{[]string{"./no-such-program"}, 127, "no-such-program"},
		{[]string{"no-such-program"}, 127, "no-such-program"},
		{[]string{"./main.go"}, 126, "permission denied"},
		{[]string{"-n", "2", "sh", "-c", "exit 7"}, 7, ""},
	} {
		j := command("")
		j.Args = append(j.Args[:1:1], test.args...)
		require.NoError(t, j.Start())
		j.ends(t, test.want)
		require.Contains(t, j.errs.String(), test.text)
	}
}

// Exit prints an error that all ranks have once in a job, and those that ranks have alone at each.
func TestExitPrints(t *testing.T) {
	const told = "mpicx: communicator corrupted"
	for how, want := range map[string]struct {
		status                int
		processes, goroutines string // lines; those of processes are sorted
	}{
		"":     {0, "", ""},
		"one":  {1, "rank 1: disk full", "rank 1: disk full\nranks 0, 2: " + told + " by rank 1: disk full"},
		"all":  {1, "rank 0: disk full\nrank 1: disk full\nrank 2: disk full", "ranks 0-2: disk full"},
		"try":  {1, "rank 1: mpicx: error propagated from rank 1: disk full", "ranks 0-2: mpicx: error propagated from rank 1: disk full"},
		"stop": {75, "mpicx: stopped by rank 1: disk full", "mpicx: stopped by rank 1: disk full"},
		"death": {137, "mpicxrun: rank 0 has died: signal: killed; the others can't continue without it\nrank 1: " +
			told + " by rank 0: its process has died; with -tags ulfm the others could continue without it", ""},
		"survived death": {1, "mpicxrun: rank 0 has died: signal: killed\nrank 1: " + told + "; dead: [0]", ""},
	} {
		how, survived := strings.CutPrefix(how, "survived ")
		t.Setenv("TEST_BACKEND", map[bool]string{true: "ulfm"}[survived])
		j := with(t, "ends", "3", how)
		j.ends(t, want.status)
		require.Equal(t, want.processes, strings.Join(sorted(j.errs.String()), "\n"), how)
		if how != "death" {
			j = &job{Cmd: exec.Command(os.Args[0], how)}
			j.Env, j.Stderr = append(os.Environ(), envProgram+"=ends"), &j.errs
			require.NoError(t, j.Start())
			j.ends(t, want.status)
			require.Equal(t, want.goroutines, strings.TrimSpace(j.errs.String()), how)
		}
	}
}

// Processes that do not agree on what a death means are no job.
func TestMixedBackends(t *testing.T) {
	refuses(t, "mixed", "build all with -tags ulfm, or none")
}

// A step of Slurm that is one process may be a job, whatever variables srun gives it.
func TestStep(t *testing.T) {
	t.Setenv("PMIX_RANK", "0")
	for tasks, want := range map[string]int{"": 125, "1": 0, "2": 125} {
		t.Setenv("SLURM_STEP_NUM_TASKS", tasks)
		status, _, errs := runToEnd(t, "sum", "-n", "2")
		require.Equal(t, want, status, "%s: %s", tasks, errs)
	}
	t.Setenv("SLURM_STEP_NUM_TASKS", "1") // in which mpirun has started more
	for _, size := range []string{"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"} {
		t.Setenv(size, "2")
		status, _, _ := runToEnd(t, "sum", "-n", "2")
		require.Equal(t, 125, status, size)
		t.Setenv(size, "")
	}
}

// What is started where it can't be a rank says so.
func TestMisplaced(t *testing.T) {
	_, out, _ := runToEnd(t, "grandchild", "-n", "2")
	require.Contains(t, out, "start a program from a rank without MPICXRUN_JOB")
	require.Contains(t, out, "exit status 1")
	_, out, _ = runToEnd(t, "nested", "-n", "1")
	require.Contains(t, out, "a job inside a job")
	require.Contains(t, out, "exit status 125")
	refuses(t, "mpirun", "one inside of the other")
	t.Setenv("PMI_RANK", "0")
	status, _, errs := runToEnd(t, "sum", "-n", "2")
	require.Equal(t, 125, status)
	require.Contains(t, errs, "does not run inside it")
	require.NoError(t, os.Unsetenv("PMI_RANK"))
	for name, value := range map[string]string{"MPICXRUN_RANK": "2", "MPICXRUN_SIZE": "none", "MPICXRUN_JOB": "relative"} {
		j := command("")
		j.Env = append(os.Environ(), envProgram+"=sum", "MPICXRUN_JOB=/none", "MPICXRUN_RANK=0", "MPICXRUN_SIZE=2", name+"="+value)
		require.NoError(t, j.Start())
		require.Equal(t, 1, j.status(t))
		require.Contains(t, j.errs.String(), "expected the values that mpicxrun sets")
	}
}

// With too few files there is no job, and the error says for what there were too few.
func TestTooFewFiles(t *testing.T) {
	for files := 10; files < 26; files++ {
		j := command("sum", "-n", "4").under(t, "sh", "-c", `ulimit -n "$0" && exec "$@"`, fmt.Sprint(files))
		if status := j.status(t); status != 0 {
			require.Regexp(t, `(fork/exec .*|pipe2?|socket|accept4?): too many open files`, j.errs.String(), "status %d with %d files", status, files)
			continue
		}
		require.Equal(t, 4, strings.Count(j.out.String(), " of 4: 10, node\n"))
	}
}
