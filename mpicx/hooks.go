package mpicx

import (
	"context"

	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/internal/ledger"
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

var _ hook.Rank = (*inside)(nil)

func (i *inside) Bare() { i.keeper = &bareKeeper{i.keeper.(*keeper), i.proc.newPlace()} }

func (i *inside) Die() {
	i.proc.die()
	if i.ulfm != nil || i.proc.driver != nil { // a driver's ranks are processes
		i.t.Die()
	}
}

func (i *inside) Dead() bool        { return i.proc.dead.Load() }
func (i *inside) Mortal() bool      { return i.ulfm != nil || i.proc.driver != nil }
func (i *inside) Machine() int      { return i.t.Machine(i.rank) }
func (i *inside) Progress() string  { return (*Comm)(i).root().progress() }
func (i *inside) Blocked() []string { return (*Comm)(i).root().Blocked() }
func (i *inside) Doing() string     { return (*Comm)(i).root().doing() }

func (i *inside) Abort(err error) {
	if i.ulfm != nil && i.proc.dead.Load() {
		return // it takes no further part, and nobody waits for it
	}
	i.proc.dead.Store(false)
	i.proc.feed(i.proc.ledger.Revive)
	i.proc.aborted.Store(&err)
	for _, d := range (*Comm)(i).root().first() {
		d.raise(newFailure(err, 0), &ledger.Raised{Cause: err, Corrupt: true})
	}
	i.proc.watch(1)
}

// first returns the communicators that the rank's program begins with. c is the rank's first.
func (c *Comm) first() []*Comm {
	if c.lineage.pool == nil {
		return []*Comm{c}
	}
	return c.derived()
}
