package ledger

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mpicx/go-mpicx/internal/errchan"
)

// A testRank is a ledger whose communicators, scopes and votes have names.
type testRank struct {
	Ledger
	comms  []*Comm // in the order in which they were made
	scopes map[string]*Scope
	votes  map[string]*Vote
	firsts map[string]bool  // of goroutines that wait: what BeginWait has returned
	place  []int            // of the next verdict
	text   *strings.Builder // of outputs
	// pending are the communicators on which something is, as the driver has it.
	pending map[*Comm]bool
}

func newTestRank() *testRank {
	r := &testRank{text: new(strings.Builder), scopes: map[string]*Scope{}, votes: map[string]*Vote{}, firsts: map[string]bool{}, pending: map[*Comm]bool{}}
	r.Face = func(e *Error) {
		e.Face, e.Place, e.Era = errors.New(textOf(e)), r.place, -1
		if len(r.place) > 0 {
			e.Era = r.place[0]
		}
	}
	return r
}

// make makes a communicator of the world's ranks members; nil: of all that from has.
func (r *testRank) make(name string, from, parent *Comm, members []int) *Comm {
	c := &Comm{Owner: name}
	r.comms = append(r.comms, c)
	if from == nil {
		r.Make(c, nil, nil, 0, true, members)
	} else {
		r.Make(c, from, parent, from.epoch, false, members)
	}
	return c
}

func (r *testRank) comm(name string) *Comm {
	i := slices.IndexFunc(r.comms, func(c *Comm) bool { return c.Owner == name })
	if i < 0 {
		return nil
	}
	return r.comms[i]
}

// enter and leave are a Wait's begin and end, as the driver has them.
func (r *testRank) enter(c *Comm) (first bool) {
	first, due := r.BeginWait(c)
	if due {
		r.Attend(c)
	}
	return first
}

// err is Err of the program, as the driver has it.
func (r *testRank) err(c *Comm) (Finding, *Error) {
	f, e, _ := c.Look(Peek)
	if f == Nothing {
		c.Answer(Peek)
		f, e, _ = c.Look(Peek)
	}
	if e != nil && e.Corrupt() {
		c.Know()
	}
	return f, e
}

// test is a future's Test, as the driver has it.
func (r *testRank) test(c *Comm) (Finding, *Error, bool) {
	f, e, pending := c.Look(Take)
	if f == Nothing && pending {
		c.Answer(Take)
	}
	return f, e, pending
}

// Outputs returns all that is to be done, and has forgotten what may be.
func (r *testRank) Outputs() (all []Output) {
	for o := r.Next(); o != nil; o = r.Next() {
		all = append(all, *o)
		if o.Action == Forget && !r.pending[o.Comm] {
			o.Comm.Forgotten()
		}
	}
	return all
}

// print notes outputs.
func (r *testRank) print(outputs []Output) {
	for i := range outputs {
		r.text.WriteString(outputs[i].text() + "\n")
	}
}

// carry notes outputs and what comes of them, with the calls that they ask for.
func (r *testRank) carry() {
	queue := r.Outputs()
	for len(queue) > 0 {
		o := queue[0]
		r.print(queue[:1])
		switch o.Action {
		case Complete:
			o.Comm.Settled()
		case Advance:
			o.Comm.Moved()
		}
		queue = append(queue[1:], r.Outputs()...)
	}
}

func names(family []*Comm, frozen []bool) string {
	var all []string
	for i, c := range family {
		name := c.Owner.(string)
		if frozen != nil && frozen[i] {
			name += " (frozen)"
		}
		all = append(all, name)
	}
	return strings.Join(all, ", ")
}

func (o *Output) text() string {
	switch o.Action {
	case Raise:
		text := fmt.Sprintf("raise %s: %s", o.Comm.Owner, o.Raised.text())
		if o.Family != nil {
			text = fmt.Sprintf("raise %s %d: %s, freeze %s", o.Comm.Owner, o.Round, o.Raised.text(), names(o.Family, nil))
		}
		return text
	case Join:
		return fmt.Sprintf("join %s %d, freeze %s", o.Comm.Owner, o.Round, names(o.Family, nil))
	case Complete:
		return fmt.Sprintf("complete %s by %s", names(o.Family, nil), textOf(o.Error))
	case Advance:
		return fmt.Sprintf("advance %s by %s", names(o.Family, o.Frozen), textOf(o.Error))
	case Open:
		return "open " + names(o.Family, o.Frozen)
	case Interrupt:
		return fmt.Sprintf("interrupt %s", o.Scope.Owner)
	case Withdraw:
		return fmt.Sprintf("withdraw %s", o.Vote.Owner)
	case Tell:
		return "log: " + o.Event.text()
	case Lose, Resume:
		return fmt.Sprintf("%s %s", o.Action, o.Comm.Owner)
	default:
		return o.Action.String()
	}
}

func (e *Event) text() string {
	s := fmt.Sprintf("%s %s", e.Kind, e.Comm.Owner)
	switch e.Kind {
	case Signalled:
		s += fmt.Sprintf(" %d: %s", e.Round, e.Raised.text())
	case Noticed:
		s += fmt.Sprintf(" %d from %d", e.Round, e.By)
		if e.Corrupt {
			s += ", corrupt"
		}
	case Joined:
		s += fmt.Sprintf(" %d", e.Round)
	case Resolved, Corrupted:
		s += ": " + textOf(e.Error)
	case Revoked:
		s += fmt.Sprintf(" from %d", e.By)
	case Died:
		s += fmt.Sprintf(" %d", e.By)
	}
	return s
}

// text is the Raised as scripts have it: ! marks a corruption.
func (r *Raised) text() string {
	if r.Corrupt {
		return string(r.Data) + "!"
	}
	return string(r.Data)
}

// textOf is the verdict, as scripts have it: the communicator and the round, and
// its reports by rank.
func textOf(e *Error) string {
	if e.Verdict == nil {
		return fmt.Sprintf("%s: messages do not move", e.Comm.Owner)
	}
	s := fmt.Sprintf("%s %d", e.Comm.Owner, e.Verdict.Round)
	for _, r := range e.Verdict.Reports {
		s += fmt.Sprintf(" %d:%s", r.Rank, r.Data)
		if r.Corrupt {
			s += "!"
		}
	}
	for _, d := range e.Verdict.Dead {
		s += fmt.Sprintf(" dead:%d", d)
	}
	return s
}

// textOfFinding is what a look has found, as scripts have it.
func textOfFinding(f Finding, e *Error, pending bool) string {
	switch {
	case e != nil && e.Corrupt():
		return "corruption " + textOf(e)
	case e != nil:
		return "verdict " + textOf(e)
	case f == Revocation:
		return "revoked"
	case f == Closure:
		return "closed"
	case pending:
		return "nothing so far"
	default:
		return "nothing"
	}
}

// state is what the rank knows of c, but for its family, in words.
func (r *testRank) state(c *Comm) string {
	words := []string{fmt.Sprintf("round %d", c.round)}
	add := func(yes bool, format string, args ...any) {
		if yes {
			words = append(words, fmt.Sprintf(format, args...))
		}
	}
	add(c.open, "open")
	add(c.fatal, "fatal")
	add(c.joined, "joined")
	add(slices.Contains(r.owed, c), "owed")
	for _, own := range c.raised {
		how := "raised"
		if slices.Contains(r.held, own) {
			how = "held"
		}
		add(true, "%s %s", how, own.text())
	}
	add(c.losing, "needs the dead")
	add(c.settling != nil, "settling")
	add(c.moving > 0, "moving %d", c.moving)
	for _, e := range c.untold {
		add(true, "untold [%s]", textOf(e))
	}
	if c.corrupted != nil {
		add(true, "corrupted [%s]", textOf(c.corrupted))
		add(!c.Knows(), "not known")
	}
	add(c.revoking, "revoking")
	add(c.revoked && !c.revoking, "revoked")
	add(c.closed, "closed")
	add(c.frozen > 0, "frozen %d", c.frozen)
	add(c.NeedsLook(), "needs a look")
	return strings.Join(words, ", ")
}

// agreed are the agreements of a verdict after which the ledger waits for Settled.
var agreed = []errchan.Settled{{}}

// testVerdict makes a verdict of c's next round, without agreements.
func (c *Comm) testVerdict(reports []errchan.Report, dead []int) *errchan.Verdict {
	slices.SortStableFunc(reports, func(a, b errchan.Report) int { return a.Rank - b.Rank })
	corrupt := len(dead) > 0 || slices.ContainsFunc(reports, func(r errchan.Report) bool { return r.Corrupt })
	return &errchan.Verdict{Round: c.round, Corrupt: corrupt, Reports: reports, Dead: dead}
}
