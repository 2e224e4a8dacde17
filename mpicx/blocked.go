package mpicx

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// Blocked describes, a line each, the operations on c and on what is derived
// from it that this rank has begun and that have not ended: operation, peer,
// tag, communicator, epoch; and the errors being resolved, with who has not
// joined. It is for people who ask why a program hangs, and may be called from
// any goroutine.
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

// byName returns what is derived from c, in an order that does not change.
func (c *Comm) byName() []*Comm {
	return slices.SortedFunc(slices.Values(c.derived()), func(a, b *Comm) int { return strings.Compare(a.name, b.name) })
}

// progress is for hook.Progress.
func (c *Comm) progress() string {
	called, _ := c.t.Called()
	text := fmt.Sprintln(c.name, c.t.Epoch(), called)
	c.t.EachPending(func(r *transport.Request) { text += fmt.Sprintf("%p ", r) })
	for _, d := range c.byName() {
		text += d.progress()
	}
	return text
}
