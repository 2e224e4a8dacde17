package mpicx

import (
	"context"
	"io"

	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/internal/ledger"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// bareKeeper lends places, but knows of no errors.
type bareKeeper struct {
	*keeper
	place *waiting.Place
}

func (k bareKeeper) Park(ctx context.Context) (*waiting.Place, <-chan struct{}) {
	return k.place, ctx.Done()
}
func (k bareKeeper) Look()                 {}
func (k bareKeeper) Unpark(*waiting.Place) {}
func (k bareKeeper) MayHaveVerdict() bool  { return false }

func init() {
	hook.Bare = func(comm any) {
		c := comm.(*Comm)
		c.keeper = &bareKeeper{(*keeper)(c), c.proc.newPlace()}
	}
	hook.Die = func(comm any) {
		c := comm.(*Comm)
		c.proc.die()
		if c.ulfm != nil || c.proc.driver != nil { // a driver's ranks are processes
			c.t.Die()
		}
	}
	hook.Machine = func(comm any) int {
		c := comm.(*Comm)
		return c.t.Machine(c.rank)
	}
	hook.Mortal = func(comm any) bool {
		c := comm.(*Comm)
		return c.ulfm != nil || c.proc.driver != nil
	}
	hook.Dead = func(comm any) bool { return comm.(*Comm).proc.dead.Load() }
	hook.Backend = func(name string) any { return Option(func(o *options) { o.backend = name }) }
	hook.Transport = func(wrap func(transport.Comm) transport.Comm) any {
		return Option(func(o *options) { o.wrap = wrap })
	}
	hook.Progress = func(comm any) string { return comm.(*Comm).root().progress() }
	hook.Blocked = func(comm any) []string { return comm.(*Comm).root().Blocked() }
	hook.DiagnosesTo = func(w io.Writer) any { return Option(func(o *options) { o.diagnoses = w }) }
	hook.Held = func(comm any) (requests, messages int) {
		c := comm.(*Comm)
		return len(transport.Pending(c.t)), c.t.(interface{ Kept() int }).Kept()
	}
	hook.Left = func(f func(int, []string)) any { return Option(func(o *options) { o.left = f }) }
	hook.Doing = func(comm any) string { return comm.(*Comm).root().doing() }
	hook.Spares = func(option any) int {
		o := new(options)
		option.(Option)(o)
		return o.spares
	}
	hook.Respawns = func(option any) bool {
		o := new(options)
		option.(Option)(o)
		return o.respawn
	}
	hook.MostFresh = func(n int) any { return Option(func(o *options) { o.mostFresh = n }) }
	hook.Abort = func(comm any, err error) {
		c := comm.(*Comm)
		if c.ulfm != nil && c.proc.dead.Load() {
			return // it takes no further part, and nobody waits for it
		}
		c.proc.dead.Store(false)
		c.proc.feed(c.proc.ledger.Revive)
		c.proc.aborted.Store(&err)
		for _, d := range c.root().first() {
			d.raise(newFailure(err, 0), &ledger.Raised{Cause: err, Corrupt: true})
		}
		c.proc.watch(1)
	}
}

// first returns the communicators that the rank's program begins with. c is the rank's first.
func (c *Comm) first() []*Comm {
	if c.lineage.pool == nil {
		return []*Comm{c}
	}
	return c.derived()
}
