package mpicx

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// If a context ends a Wait, the error names the operation. Futures know nothing of ranks, and
// operations keep no text for this. The transport says what is pending.

// An interruptedError is a context's cause, with the operation that was waited for.
type interruptedError struct {
	waitedFor string
	cause     error
}

func (e *interruptedError) Error() string { return fmt.Sprintf("mpicx: %s: %v", e.waitedFor, e.cause) }
func (e *interruptedError) Unwrap() error { return e.cause }

// Describe adds to ctx's cause what was waited for. Other errors name it themselves.
func (k *keeper) Describe(ctx context.Context, err error, waited ...*waiting.Cell) error {
	if !endedBy(ctx, err) {
		return err
	}
	if k.call != "" {
		return k.interrupted(ctx, k.call, err)
	}
	return &interruptedError{k.waitedFor(waited), err}
}

// endedBy says whether err is the cause of ctx or, if a peer's error has ended the context of a Try,
// of the context around that Try.
func endedBy(ctx context.Context, err error) bool {
	if waiting.IsCommon(err) || is[*interruptedError](err) {
		return false
	}
	ctx = patient(ctx)
	return ctx.Err() != nil && errors.Is(err, context.Cause(ctx))
}

// waitedFor names the pending operations on c that have these futures.
func (c *Comm) waitedFor(cells []*waiting.Cell) string {
	names := make(map[*waiting.Cell]string)
	c.t.EachPending(func(r *transport.Request) {
		if o := operationOf(r); o != nil {
			if cell := o.cell(); names[cell] == "" && slices.Contains(cells, cell) {
				names[cell] = c.describe(r)
			}
		}
	})
	const most = 4
	var known []string
	for _, cell := range cells {
		if name := names[cell]; name != "" && len(known) < most {
			known = append(known, name)
		}
	}
	others := len(cells) - len(known)
	switch {
	case len(known) == 0 && others == 1:
		return fmt.Sprintf("an operation on %s%s", c.name, c.unresolved())
	case len(known) == 0:
		return fmt.Sprintf("one of %d operations", others)
	}
	text := fmt.Sprintf("%s on %s", strings.Join(known, " or "), c.name)
	if others > 0 {
		text += fmt.Sprintf(" or %d more", others)
	}
	return text
}

// operationOf returns the operation of a request if it is the program's, else nil.
func operationOf(r *transport.Request) operation {
	done := any(r.Done)
	if x, ok := done.(*collective.Exchange); ok {
		done = x.Ender()
	}
	o, _ := done.(operation)
	return o
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
	case interface{ making() string }:
		return done.making()
	case interface{ operation() string }:
		tag := fmt.Sprintf("tag %d", r.Tag)
		switch r.Tag {
		case AnyTag:
			tag = "any tag"
		case transport.NoTag: // of Mrecv
			tag = "whose message was withdrawn"
		}
		return fmt.Sprintf("%s %s, %s", done.operation(), peer, tag)
	case transport.Stepper:
		operation, step := done.Step()
		return fmt.Sprintf("%s, step %d: %v %s", operation, step, r.Kind, peer)
	}
	return fmt.Sprintf("%v %s, tag %d", r.Kind, peer, r.Tag)
}

// unresolved says what the error channel of c waits for, or returns "".
func (c *Comm) unresolved() string {
	if waiting := c.channel.Waiting(); waiting != "" {
		return ", where " + waiting
	}
	return ""
}

// interrupted is Describe for the operation called name.
func (c *Comm) interrupted(ctx context.Context, name string, err error) error {
	if !endedBy(ctx, err) {
		return err
	}
	return &interruptedError{fmt.Sprintf("%s on %s%s", name, c.name, c.unresolved()), err}
}
