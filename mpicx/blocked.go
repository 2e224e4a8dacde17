package mpicx

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mpicx/go-mpicx/internal/transport"
)

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

// byName returns the family of c by name, so the order does not change.
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
