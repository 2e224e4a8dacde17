package mpicx

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// doing says which operation this rank is in. All ranks in the same operation return the same
// text, so that a Diagnosis can group them. c is the rank's first communicator. The goroutine that
// receives a question calls it.
func (c *Comm) doing() string {
	at := c.proc.stage.Load()
	switch {
	case c.proc.dead.Load():
		return "dead" // with the black channel, where a death ends no process
	case at >= stageEnded:
		return "returned"
	case at == stageParked:
		return "a spare that is not needed so far"
	}
	var d doing
	d.look(c)
	switch {
	case at == stageReturned:
		return "returned, waits for what it has begun: " + d.list(append(d.awaited, d.pending...))
	case len(d.awaited) > 0:
		return d.list(d.awaited)
	case len(d.pending) > 0:
		return "waits for none of what is pending: " + d.list(d.pending)
	case len(d.last) > 0:
		return "computing: nothing pending, last " + d.list(d.last)
	}
	return "computing: nothing pending"
}

// A doing lists the operations that are found on a rank's communicators.
type doing struct {
	awaited, pending []string // pending operations: with a goroutine that waits, and without
	last             []string // the last collective operation of each communicator
}

// list joins the first few of all, and says how many more there are.
func (d *doing) list(all []string) string {
	const most = 4
	if more := len(all) - most; more > 0 {
		all = append(slices.Clone(all[:most]), fmt.Sprintf("%d more", more))
	}
	return strings.Join(all, " and ")
}

// look adds the operations on c and on the communicators derived from it.
func (d *doing) look(c *Comm) {
	add := func(to *[]string, text string) {
		if !slices.Contains(*to, text) {
			*to = append(*to, text)
		}
	}
	c.t.EachPending(func(r *transport.Request) {
		switch awaited, known := isAwaited(r); {
		case awaited:
			add(&d.awaited, c.called(r))
		case known:
			add(&d.pending, c.called(r))
		}
	})
	for part := range strings.SplitSeq(c.channel.Waiting(), "; ") {
		switch what, whom, waits := strings.Cut(part, " waits for "); { // whom differs between ranks
		case !waits:
		case strings.Contains(whom, "this rank to join"):
			add(&d.pending, what+" on "+c.name)
		default:
			add(&d.awaited, what+" on "+c.name)
		}
	}
	if number, what := c.t.Called(); number > 0 && what.Kind() != signature.Release {
		add(&d.last, c.numbered(what.String(), number, c.t.Epoch()))
	}
	for _, child := range c.byName() {
		d.look(child)
	}
}

// isAwaited says whether a goroutine waits for the operation of a request. known says whether the
// program knows of the operation, or waits in it.
func isAwaited(r *transport.Request) (awaited, known bool) {
	if o := operationOf(r); o != nil {
		return o.cell().Awaited(), true
	}
	if x, ok := r.Done.(*collective.Exchange); ok {
		_, awaited = x.Ender().(ender) // it belongs to TryAll, which waits at once
		return awaited, awaited
	}
	_, awaited = r.Done.(*onlyError)
	return awaited, awaited
}

// called returns the name of a request's operation. It is the same at all ranks in the operation.
func (c *Comm) called(r *transport.Request) string {
	number := transport.CollectiveNumber(r.Tag)
	switch done := r.Done.(type) {
	case transport.Stepper:
		name, _ := done.Step()
		if r.Signature != 0 {
			name = r.Signature.String()
		}
		return c.numbered(name, number, r.Epoch)
	case *onlyError:
		return c.numbered(done.name, number, r.Epoch)
	}
	return c.describe(r) + " on " + c.name + inEpoch(r.Epoch)
}

// numbered adds to the name of a collective operation its number, communicator and epoch, such as
// "Barrier #17 on world". The number is left out for agreements.
func (c *Comm) numbered(name string, seq int, e transport.Epoch) string {
	if seq >= transport.Agreements {
		return name + " on " + c.name + inEpoch(e)
	}
	return fmt.Sprintf("%s #%d on %s%s", name, seq, c.name, inEpoch(e))
}

// inEpoch returns the text that names an epoch. It is "" for the first.
func inEpoch(e transport.Epoch) string {
	if e == 0 {
		return ""
	}
	return fmt.Sprintf(", epoch %v", e)
}

// Blocked returns a line for each operation that this rank has begun on c, or on a communicator
// derived from c, and that has not ended: operation, peer, tag, communicator, epoch. It also
// names the rounds of errors that are open, and the ranks that have not joined them. Use it to find
// out why a program hangs. It may be called from any goroutine. [Comm.Diagnose] asks all ranks.
func (c *Comm) Blocked() []string {
	c.there("Blocked")
	var lines []string
	c.t.EachPending(func(r *transport.Request) {
		lines = append(lines, fmt.Sprintf("%s on %s, epoch %v", c.describe(r), c.name, r.Epoch))
	})
	if waiting := c.channel.Waiting(); waiting != "" {
		lines = append(lines, fmt.Sprintf("on %s: %s", c.name, waiting))
	}
	for _, d := range c.byName() {
		lines = append(lines, d.Blocked()...)
	}
	return lines
}

// byName returns what derived returns, sorted by name, so that the order is the same each time.
func (c *Comm) byName() []*Comm {
	return slices.SortedFunc(slices.Values(c.derived()), func(a, b *Comm) int { return strings.Compare(a.name, b.name) })
}

// progress implements hook.Rank.Progress.
func (c *Comm) progress() string {
	called, _ := c.t.Called()
	text := fmt.Sprintln(c.name, c.t.Epoch(), called)
	c.t.EachPending(func(r *transport.Request) { text += fmt.Sprintf("%p ", r) })
	for _, d := range c.byName() {
		text += d.progress()
	}
	return text
}
