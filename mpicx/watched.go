package mpicx

import (
	"fmt"

	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// watchBy adds the watchers that the options ask for to the rank whose first communicator is c.
// Without watchers, neither the ledger nor a Wait makes events.
func (c *Comm) watchBy(o *options) {
	p := c.proc
	if p.watchers = o.watchers(p.rank); p.watchers == nil {
		return
	}
	p.ledger.Quiet = false
	if o.trace || o.recorder != nil {
		p.observe = func(cells ...*waiting.Cell) func() { return p.blocked(func() string { return namesOf(cells) }) }
		p.place = p.newPlace()
	}
}

func (o *options) watchers(rank int) (all []watcher) {
	if o.log != nil {
		all = append(all, logging{o.log, rank})
	}
	if o.trace {
		all = append(all, &tracing{rank: rank})
	}
	if o.recorder != nil {
		all = append(all, &recording{o.recorder, o.run, rank})
	}
	return all
}

// namesOf names the operations that a goroutine waits for. The names are the same at all ranks that
// are in them.
func namesOf(cells []*waiting.Cell) string {
	if len(cells) > 1 {
		return fmt.Sprintf("WaitAny of %d", len(cells))
	}
	switch k, ok := cells[0].Kept().(*keeper); {
	case !ok:
		return "Wait"
	case k.call != "":
		return k.call + " on " + k.name
	default:
		return k.nameOf(cells[0])
	}
}

func (c *Comm) nameOf(cell *waiting.Cell) string {
	name := "Wait on " + c.name
	c.t.EachPending(func(r *transport.Request) {
		if o := operationOf(r); o != nil && o.cell() == cell {
			name = c.called(r)
		}
	})
	return name
}
