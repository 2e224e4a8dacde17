package mpicxtest

import (
	"bytes"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mpicx/go-mpicx/internal/fault"
	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/internal/machine"
	"github.com/mpicx/go-mpicx/mpicx"
)

// A Process says how a process of RunProcesses has ended.
type Process struct {
	Err    string   // the text of what fn returned there; "" if that is nil, or it did not return
	Status int      // the exit status; 128 and the signal's number if a signal has ended the process
	Killed bool     // a plan has ended it
	Log    string   // its output: to the test's log, and to its standard output and error
	Values [][]byte // the values that it has handed over, for ValuesOf
}

// RunProcesses is Run with a process of this machine for each rank, started as mpicxrun starts
// them. The test binary starts itself n times, with this test alone, and in each of these
// processes the call of RunProcesses calls fn as one rank. It fails t if fn returns an error in
// a process, or does not return. The result says how each process has ended.
//
// Code before the call runs in each process as well, TestMain included. Function fn therefore
// captures variables of its process, and changes them only there. To pass a result to the test, log
// it or call Hand. Code after the call runs in the test alone, except for Cleanups. If an earlier
// call of RunProcesses stands in the same test, or in a test that this is a subtest of, it runs
// nothing in these processes and returns there what it has returned in the test. The program's own
// flags are passed on; -race, -short and -count work as usual, with new processes for each count.
//
// Time is real, and a deadlock ends by the test's -test.timeout. On Windows, and in a job of
// mpirun or mpicxrun, such processes cannot be started, and RunProcesses skips t.
//
// Options are those of mpicx.Run. With WithSpares(k) the last k of the n processes are spares. With
// WithRespawn up to 16 processes are started later. In the result they follow the others.
func RunProcesses(t *testing.T, n int, fn func(ctx context.Context, world *mpicx.Comm) error, opts ...mpicx.Option) []Process {
	t.Helper()
	return runProcesses(t, n, new(fault.Plan), fn, opts)
}

// RunProcessFaults is RunProcesses with processes that end at the moments that plan names.
// These do not fail t. Plans are those of RunFaults, where a killed process gets a SIGKILL, and
//
//	kill 3 by SIGTERM at operation 17
//	exit 2 with status 3 in Barrier step 2
//	stop 1 for 200ms in Allreduce step 2     it continues afterwards
//
// with any moment of RunFaults, and with "must" before it. Without -tags ulfm a job ends with the
// first death: a plan in which processes may end fails t there, unless t calls [NeedsULFM] first.
func RunProcessFaults(t *testing.T, n int, plan string, fn func(ctx context.Context, world *mpicx.Comm) error, opts ...mpicx.Option) []Process {
	t.Helper()
	p := planOf(t, plan, n+later(opts))
	if p.Deadly() {
		deathsAreSeen(t, fmt.Sprintf("plan %q", p))
	}
	return runProcesses(t, n, p, fn, opts)
}

// Hand passes a value of any type that encoding/gob takes to the test, where ValuesOf returns
// it, even if the process dies afterwards. Call it in functions that RunProcesses calls.
func Hand(v any) {
	if child == nil {
		panic("mpicxtest: Hand, outside of RunProcesses")
	}
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(v); err != nil {
		panic(fmt.Sprintf("mpicxtest: Hand: %v", err))
	}
	child.tell(message{Value: b.Bytes()})
}

// ValuesOf returns the values that a process has passed to the test by Hand, in order. All are
// of one type.
func ValuesOf[T any](t testing.TB, p Process) []T {
	t.Helper()
	all := make([]T, len(p.Values))
	for i, b := range p.Values {
		if err := gob.NewDecoder(bytes.NewReader(b)).Decode(&all[i]); err != nil {
			t.Fatalf("value %d that a process has handed over: %v", i, err)
		}
	}
	return all
}

func runProcesses(t *testing.T, n int, plan *fault.Plan, fn func(context.Context, *mpicx.Comm) error, opts []mpicx.Option) []Process {
	t.Helper()
	call := calls.next(t)
	if child != nil {
		return child.run(t, call, fn, opts)
	}
	if machine.Processes() > 0 {
		t.Skip("a launcher has started this process, which can be in one job")
	}
	later := later(opts)
	job, err := machine.NewJob(n, later)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	defer job.Close()
	b := &beginning{Test: t.Name(), Call: call, Plan: plan.String(), Before: calls.before(t.Name()), Dir: t.TempDir()}
	text, err := json.Marshal(b)
	if err == nil {
		err = os.WriteFile(b.name(), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	logs := make([]bytes.Buffer, n+later)
	outcomes, err := job.Run(func(rank int) *exec.Cmd {
		c := b.command(t)
		c.Stdout, c.Stderr = &logs[rank], &logs[rank]
		c.WaitDelay = time.Second // a child of the process may still have its output open
		return c
	}, nil, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	all, counts := make([]Process, len(outcomes)), make([]string, n+later)
	skipped := false
	for r := range all {
		p := &all[r]
		p.Status, p.Log = outcomes[r].Status(), ofTesting.ReplaceAllString(logs[r].String(), "")
		returned := false
		for _, m := range b.read(t, r) {
			switch {
			case m.Value != nil:
				p.Values = append(p.Values, m.Value)
			case m.Statement != nil:
				plan.Note(*m.Statement, r)
				p.Killed, counts[r] = m.Killed, m.Counts
			default:
				returned, p.Err, counts[r] = true, m.Err, m.Counts
				skipped = skipped || m.Skipped
				if m.Failed {
					t.Errorf("rank %d has failed", r)
				}
			}
		}
		switch {
		case p.Killed || skipped:
		case p.Err != "":
			t.Errorf("rank %d: %s", r, p.Err)
		case !returned:
			t.Errorf("rank %d has ended: %s", r, outcomes[r].State)
		}
	}
	if !skipped {
		reportMissed(t, plan, n+later, func(rank int) string { return counts[rank] })
	}
	for r, p := range all {
		if p.Log != "" && (t.Failed() || testing.Verbose()) {
			t.Logf("rank %d has written\n%s", r, p.Log)
		}
	}
	if skipped && !t.Failed() {
		t.Skip("a rank has skipped the test")
	}
	calls.note(t.Name(), all)
	return all
}

// later returns how many processes may be started later.
func later(opts []mpicx.Option) int {
	if respawns(opts) {
		return 16
	}
	return 0
}

func respawns(opts []mpicx.Option) bool {
	return slices.ContainsFunc(opts, func(o mpicx.Option) bool { return hook.SettingsOf(o).Respawn })
}

// A beginning tells a process of RunProcesses, when it starts, what it needs to know.
type beginning struct {
	Test   string
	Call   int // of RunProcesses in the test, from 0
	Plan   string
	Before map[string][][]Process // results of earlier calls, by test
	Dir    string                 // directory of the processes' messages
}

// envBeginning is an environment variable with the name of a file that has a beginning as JSON.
const envBeginning = "MPICXTEST_PROCESS"

func (b *beginning) name() string { return b.Dir + "/beginning" }

// command returns the command that runs only this test.
func (b *beginning) command(t *testing.T) *exec.Cmd {
	t.Helper()
	args := []string{"-test.run=" + pattern(b.Test), "-test.v", "-test.count=1", fmt.Sprint("-test.short=", testing.Short())}
	if end, ok := t.Deadline(); ok { // the processes end before the test does, and say what they were doing
		args = append(args, fmt.Sprint("-test.timeout=", max(time.Until(end)*9/10, time.Millisecond)))
	} else {
		args = append(args, "-test.timeout=0")
	}
	for _, a := range os.Args[1:] {
		if !strings.HasPrefix(strings.TrimLeft(a, "-"), "test.") {
			args = append(args, a)
		}
	}
	c := exec.Command(os.Args[0], args...)
	c.Env = append(os.Environ(), envBeginning+"="+b.name())
	return c
}

// ofTesting are the lines of a log that package testing itself writes.
var ofTesting = regexp.MustCompile(`(?m)^[ \t]*(=== (RUN|CONT|PAUSE|NAME)|--- (SKIP|PASS): |PASS$).*\n?`)
