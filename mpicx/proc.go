package mpicx

import (
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mpicx/go-mpicx/future"
)

// proc is a rank of the job: what its communicators share. Above all it knows
// whether the rank is inside an operation. While it is, it joins the resolution
// of errors on any of its communicators at once, so that no rank hangs in one
// while its peers resolve an error of another (design rule D2). While it
// computes, it joins at its next operation, so that an error which it raises
// before is resolved with the others (P2).
type proc struct {
	rank int
	log  *slog.Logger // nil: silent

	// place is where the rank's goroutine waits. While it is taken, that is nil,
	// and the rank is inside an operation: one atomic swap says both.
	place atomic.Pointer[future.Place]
	// extra counts what else keeps the rank attending: further goroutines that
	// wait, channels that are watched, and that the rank has left.
	extra atomic.Int32

	dead atomic.Bool // mpicxtest.Die ended it

	mu       sync.Mutex
	unjoined []*Comm // with a round that is noticed, but not joined
	owing    atomic.Int32
}

func newProc(rank int, log *slog.Logger) *proc {
	p := &proc{rank: rank, log: log}
	p.place.Store(future.NewPlace())
	return p
}

// enter begins an operation that may block; leave ends it.
func (p *proc) enter() *future.Place {
	place := p.place.Swap(nil)
	if place == nil {
		p.extra.Add(1)
	}
	p.join()
	return place
}

func (p *proc) leave(place *future.Place) {
	if place == nil {
		p.extra.Add(-1)
	} else {
		p.place.Store(place)
	}
}

func (p *proc) attending() bool { return p.place.Load() == nil || p.extra.Load() > 0 }

// attend keeps the rank attending for good: it has left.
func (p *proc) attend() {
	p.extra.Add(1)
	p.join()
}

// owes notes that c has a round that this rank has to join.
func (p *proc) owes(c *Comm) {
	p.mu.Lock()
	p.unjoined = append(p.unjoined, c)
	p.owing.Store(int32(len(p.unjoined)))
	p.mu.Unlock()
	if p.attending() {
		p.join()
	}
}

// paid notes that the rank has joined c's round.
func (p *proc) paid(c *Comm) {
	p.mu.Lock()
	p.unjoined = slices.DeleteFunc(p.unjoined, func(o *Comm) bool { return o == c })
	p.owing.Store(int32(len(p.unjoined)))
	p.mu.Unlock()
}

// join joins what the rank owes.
func (p *proc) join() {
	if p.owing.Load() == 0 {
		return
	}
	p.mu.Lock()
	todo := slices.Clone(p.unjoined)
	p.mu.Unlock()
	for _, c := range todo {
		c.join()
	}
}
