package report

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/mpicx/go-mpicx/mpicx"
)

// Settings are a run's settings, as reports print them.
type Settings struct {
	Matrix, RHS       string // the matrix's name; RHS is "" if it comes from a known solution
	Method, Precond   string
	GMRESRestart      int
	Ranks             int
	Tol               float64
	Checkpoint, Check int
	Compare, JSON     bool
}

// Reports are notified of the progress of runs.
type Reports interface {
	Iteration(run string, done int, residual float64) // by rank 0, which waits for the return
	Ended(o *Outcome, leads bool)                     // leads: the leader is in this process
	End(outcomes []*Outcome)
}

// New returns reports that are written to w. If w is a terminal, a line shows the progress.
func New(cfg *Settings, terminal bool, w io.Writer) Reports {
	if cfg.JSON {
		return &jsonReport{cfg, w}
	}
	return &textReport{cfg: cfg, w: w, progress: newProgress(terminal, w)}
}

// A jsonReport prints one document at the end.
type jsonReport struct {
	cfg *Settings
	w   io.Writer
}

func (j *jsonReport) Iteration(string, int, float64) {}
func (j *jsonReport) Ended(*Outcome, bool)           {}

func (j *jsonReport) End(outcomes []*Outcome) {
	type matrix struct {
		Name    string `json:"name"`
		Rows    int    `json:"rows"`
		Entries int    `json:"entries"`
	}
	c := j.cfg
	document := struct {
		Matrix     matrix     `json:"matrix"`
		RHS        string     `json:"rhs"` // "": of a known solution
		Method     string     `json:"method"`
		Restart    int        `json:"gmresRestart"`
		Precond    string     `json:"precond"`
		Ranks      int        `json:"ranks"`
		Backend    string     `json:"backend"`
		Tol        float64    `json:"tol"`
		Checkpoint int        `json:"checkpoint"`
		Check      int        `json:"check"`
		Runs       []*Outcome `json:"runs"`
	}{
		matrix{c.Matrix, outcomes[0].Rows, outcomes[0].NNZ}, c.RHS,
		c.Method, c.GMRESRestart, c.Precond, c.Ranks, mpicx.Backend, c.Tol, c.Checkpoint, c.Check, outcomes,
	}
	enc := json.NewEncoder(j.w)
	enc.SetIndent("", "  ")
	_ = enc.Encode(document) // w may be a closed pipe; fmt.Print ignores that, too
}

// A textReport prints text for people.
type textReport struct {
	cfg      *Settings
	w        io.Writer
	progress *progress
	free     *Outcome
}

func (t *textReport) Iteration(run string, done int, residual float64) {
	t.progress.show(run, done, residual, t.cfg.Tol)
}

// line prints a paragraph with its title in the margin.
func (t *textReport) line(title, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	fmt.Fprintf(t.w, "%-12s%s\n", title, strings.ReplaceAll(text, "\n", "\n            "))
}

func (t *textReport) head(o *Outcome) {
	t.line("system", "%s: %d rows, %d entries; b from %s", t.cfg.Matrix, o.Rows, o.NNZ, t.rhs())
	t.line("method", "%s, preconditioner %s, until |b-Ax| <= %g |b|", t.cfg.Method, t.cfg.Precond, t.cfg.Tol)
	t.line("ranks", "%d, about %d rows each; errors by %s", t.cfg.Ranks, o.Rows/t.cfg.Ranks, mpicx.Backend)
}

func (t *textReport) rhs() string {
	if t.cfg.RHS == "" {
		return "a known solution"
	}
	return t.cfg.RHS
}

func (t *textReport) Ended(o *Outcome, leads bool) {
	t.progress.clear()
	first := t.free == nil
	if first {
		t.free = o
	}
	switch {
	case !leads:
		return
	case first:
		t.head(o)
		for _, e := range o.Events { // not injected: a real error, or a false alarm
			t.event(e)
		}
		t.end(o, "no fault")
	case !t.cfg.Compare:
		fmt.Fprintln(t.w)
		t.story(o)
	}
}

// story prints faults and events in order.
func (t *textReport) story(o *Outcome) {
	events := o.Events
	for _, inj := range o.Injections {
		for len(events) > 0 && inj.Fired && events[0].End.Before(inj.At) {
			t.event(events[0])
			events = events[1:]
		}
		switch {
		case inj.Fired:
			t.line("fault", "rank %d, %s: %s", inj.Rank, inj.When(), inj.What)
		case inj.Recovery > 0:
			t.line("no fault", "at rank %d: there was no recovery %d", inj.Rank, inj.Recovery)
		default:
			t.line("no fault", "at rank %d: the run ended before iteration %d was done", inj.Rank, inj.Iter)
		}
	}
	for _, e := range events {
		t.event(e)
	}
	if o.Recovery == None && len(o.Events) == 0 {
		t.line("nobody told", "this run has no detection and no Try; it may do %d iterations", o.MaxIter)
	}
	t.end(o, "converged")
}

// end prints the result of a run, and what a reader might overlook.
func (t *textReport) end(o *Outcome, title string) {
	if !o.Converged {
		title = "FAILED"
	}
	t.line(title, "%s", t.result(o))
	for _, s := range t.remarks(o) {
		t.line("", "%s", s)
	}
}

// event prints which ranks failed, how soon all knew, and the recovery.
func (t *textReport) event(e Event) {
	for _, f := range e.Failures {
		when := fmt.Sprintf("with %d iterations done", e.Iteration)
		if since := float64(e.Since); !math.IsNaN(since) {
			when += fmt.Sprintf(", %s after the fault", seconds(since))
		}
		if f.Code != 0 {
			when += fmt.Sprintf(", code %d", f.Code)
		}
		t.line("failed", "rank %d, %s: %s", f.Rank, when, f.Message)
	}
	for _, d := range e.Dead {
		t.line("died", "rank %d, with %d iterations done: it told nobody", d, e.Iteration)
	}
	switch {
	case e.Takeover != nil:
	case e.Replaced:
		t.line("", "others took the places of ranks that are gone")
	case slices.ContainsFunc(e.Failures, func(f Failure) bool { return strings.HasPrefix(f.Message, "panic: ") }):
		t.line("", "it panicked in %s: the communicator is corrupted, the job has ended", e.Failures[0].Origin)
	case len(e.Dead) > 0:
		t.line("", "the communicator is corrupted, the job has ended")
	case e.Corrupted:
		t.line("", "nothing but Guard was there to tell the others: the communicator is corrupted, the job has ended")
	}
	switch {
	case e.Told.Ranks > 0 && e.Unknown:
		t.line("told", "the other %s, the last %s after the first; when it began is not known\nall ranks had the complete error %s after the first was told",
			count(e.Told.Ranks, "rank"), seconds(e.Told.Max), seconds(e.Ready.Max))
	case e.Told.Ranks > 0:
		t.line("told", "the other %s after %s (first), %s (median), %s (last)\nall ranks had the complete error after %s",
			count(e.Told.Ranks, "rank"), seconds(e.Told.Min), seconds(e.Told.Median), seconds(e.Told.Max), seconds(e.Ready.Max))
	}
	if e.Takeover != nil {
		t.takeover(e.Takeover)
	}
	for _, r := range e.Repairs {
		t.line("repair", "%s", r)
	}
	if e.Recovery != "" {
		t.line("recovery", "%s; it took %s", e.Recovery, seconds(e.Seconds))
	}
}

// takeover prints what happened to the rows of ranks that are gone.
func (t *textReport) takeover(o *Takeover) {
	again := ""
	if o.Shrunk > 1 {
		again = fmt.Sprintf(", in %d attempts, as ranks were lost meanwhile", o.Shrunk)
	}
	t.line("shrunk", "the communicator, to %s%s\n%s of %d were lost; they and %s have another owner now",
		count(o.Ranks, "rank"), again, count(o.Lost, "row"), o.Rows, count(o.Moved, "other"))
	if o.Lost == 0 {
		return
	}
	how := fmt.Sprintf("was interpolated from the survivors', in %s on these rows alone", count(o.Iterations, "iteration"))
	switch {
	case !o.Interpolated && o.Restored < o.Zeroed:
		how = "came from a neighbour's copy of the checkpoint"
	case !o.Interpolated:
		how = "is 0: nothing better was found"
	}
	t.line("repair", "the iterate in the lost rows %s\n|b-Ax|/|b| = %.3g before; %.3g with 0 in the lost rows, %.3g with the checkpoint there, %.3g now",
		how, o.Before, o.Zeroed, o.Restored, o.After)
}

// count is "1 rank" or "7 ranks".
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (t *textReport) result(o *Outcome) string {
	s := fmt.Sprintf("%d iterations, %s", o.Iterations, seconds(o.Seconds))
	if t.free != nil && o != t.free {
		s = fmt.Sprintf("%d iterations (%+d), %s (without the fault %s)", o.Iterations, o.Iterations-t.free.Iterations, seconds(o.Seconds), seconds(t.free.Seconds))
	}
	if o.Failure != "" {
		return s + "; the run ended by an error, without a solution:\n" + o.Failure
	}
	s += fmt.Sprintf("\ntrue residual |b-Ax|/|b| = %.3g, computed from scratch", o.TrueResidual)
	if o.Error != nil {
		s += fmt.Sprintf("; error |x-x*|/|x*| = %.3g", *o.Error)
	}
	return s
}

// remarks returns what a reader might overlook.
func (t *textReport) remarks(o *Outcome) []string {
	var s []string
	if !o.Converged && o.Failure == "" {
		s = append(s, fmt.Sprintf("not converged after %s, expected a residual of at most %g", count(o.Iterations, "iteration"), t.cfg.Tol))
	}
	if o.Claimed && !o.Converged {
		s = append(s, fmt.Sprintf("the solver itself believes that it has converged: its recursion says %.3g", o.Recursive))
	}
	if !o.Claimed && o.Failure == "" && math.IsNaN(float64(o.Recursive)) {
		s = append(s, "NaN went through the reductions to all ranks, and never leaves")
	}
	for _, inj := range o.Injections {
		switch {
		case !inj.Fired || inj.Detected || o.Recovery == None:
		case o.Converged:
			s = append(s, fmt.Sprintf("the fault %s was not detected: it did no harm that shows in the result", inj.Fault))
		default:
			s = append(s, fmt.Sprintf("the fault %s was not detected", inj.Fault))
		}
	}
	return s
}

func (t *textReport) End(outcomes []*Outcome) {
	if t.cfg.Compare {
		fmt.Fprintln(t.w)
		for _, inj := range outcomes[len(outcomes)-1].Injections {
			t.line("fault", "rank %d, %s: %s", inj.Rank, inj.When(), inj.What)
		}
		fmt.Fprintln(t.w)
		compareTable(t.w, outcomes)
	}
}

// compareTable prints a line for each run, in Markdown.
func compareTable(w io.Writer, outcomes []*Outcome) {
	tw := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	fmt.Fprintln(tw, "| run\t| iterations\t| time\t| recoveries\t| true residual\t| error\t| verdict\t|")
	fmt.Fprintln(tw, "| ---\t| ---\t| ---\t| ---\t| ---\t| ---\t| ---\t|")
	for _, o := range outcomes {
		recoveries := 0
		for _, e := range o.Events {
			if e.Recovery != "" {
				recoveries++
			}
		}
		residual, distance := "-", "-"
		if o.Failure == "" {
			residual = fmt.Sprintf("%.2g", o.TrueResidual)
			if o.Error != nil {
				distance = fmt.Sprintf("%.2g", *o.Error)
			}
		}
		fmt.Fprintf(tw, "| %s\t| %d\t| %s\t| %d\t| %s\t| %s\t| %s\t|\n",
			o.Name, o.Iterations, seconds(o.Seconds), recoveries, residual, distance, verdict(o))
	}
	tw.Flush()
}

func verdict(o *Outcome) string {
	switch {
	case o.Converged:
		return "converged"
	case o.Failure != "":
		return "ended by an error"
	case o.Claimed:
		return "wrong, and believes it is right"
	default:
		return "not converged"
	}
}

// None is the name of no recovery.
const None = "none"

// seconds prints a duration with three digits.
func seconds(s float64) string {
	d := time.Duration(s * 1e9)
	for unit := time.Duration(1); ; unit *= 10 {
		if d.Abs() < 1000*unit || unit > time.Second {
			return d.Round(unit).String()
		}
	}
}
