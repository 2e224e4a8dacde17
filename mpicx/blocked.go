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
	s := &c.collectives
	s.mu.Lock()
	text := fmt.Sprintln(c.name, c.t.Epoch(), s.epoch, s.next)
	s.mu.Unlock()
	c.t.EachPending(func(r *transport.Request) { text += fmt.Sprintf("%p ", r) })
	for _, d := range c.byName() {
		text += d.progress()
	}
	return text
}

func (c *Comm) describe(r *transport.Request) string {
	direction := "from"
	if r.Kind == transport.Sending {
		direction = "to"
	}
	peer := fmt.Sprintf("%s rank %d", direction, r.Peer)
	if r.Peer == AnySource {
		peer = "from any rank"
	}
	switch done := r.Done.(type) {
	case interface{ operation() string }:
		tag := fmt.Sprintf("tag %d", r.Tag)
		if r.Tag == AnyTag {
			tag = "any tag"
		}
		return fmt.Sprintf("%s %s, %s", done.operation(), peer, tag)
	case transport.Stepper:
		operation, step := done.Step()
		return fmt.Sprintf("%s, step %d: %v %s", operation, step, r.Kind, peer)
	}
	return fmt.Sprintf("%v %s, tag %d", r.Kind, peer, r.Tag)
}
