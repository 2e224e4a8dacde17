package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/local"
	"github.com/mpicx/go-mpicx/internal/waiting"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/inject"
)

// backend is the option that chooses an error backend at run time.
func backend(name string) mpicx.Option { return hook.Backend[mpicx.Option](name) }

// ulfm runs fn on n ranks that see deaths and get them as errors.
func ulfm(n int, fn func(context.Context, *mpicx.Comm) error) {
	must(mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		world.SetErrhandler(mpicx.ErrorsReturn)
		return fn(ctx, world)
	}, mpicx.WithRanks(n), backend("ulfm")))
}

// A span is the time from when the first rank begins an operation until the last rank has ended it.
// This is its cost if ranks share cores.
type span struct {
	mu          sync.Mutex
	first, last time.Time
}

func (s *span) add(begun, ended time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.first.IsZero() || begun.Before(s.first) {
		s.first = begun
	}
	if ended.After(s.last) {
		s.last = ended
	}
}

func (s *span) length() time.Duration { return s.last.Sub(s.first) }

func median(spans []span) time.Duration {
	var s samples
	for i := range spans {
		s = append(s, float64(spans[i].length()))
	}
	return time.Duration(s.median())
}

// interrupted compares a barrier that one rank revokes instead of entering it with a dissemination
// barrier on the same transport.
func interrupted(n int) func(config) result {
	return func(c config) result {
		times := c.times(max(3, 12_000/n))
		s := inTurn(c.times(5), func() time.Duration { return revokedBarriers(n, times) },
			func() time.Duration { return dissemination(n, times) })
		return result{s[0], s[1], "from the first rank in to the last one out"}
	}
}

// A gate holds ranks until all have arrived, so that none is busy with anything that is not
// measured.
type gate struct {
	ranks int
	mu    sync.Mutex
	come  int
	open  chan struct{}
}

func newGate(n int) *gate { return &gate{ranks: n, open: make(chan struct{})} }

func (g *gate) pass() {
	g.mu.Lock()
	open := g.open
	if g.come++; g.come == g.ranks {
		g.come, g.open = 0, make(chan struct{})
		close(open)
	}
	g.mu.Unlock()
	<-open
}

func revokedBarriers(n, times int) time.Duration {
	spans := make([]span, times)
	all := newGate(n)
	ulfm(n, func(ctx context.Context, world *mpicx.Comm) error {
		for i := range spans {
			comm := world.Dup().MustGet(ctx)
			comm.Barrier().MustWait(ctx) // plan A
			all.pass()
			begun := time.Now()
			if world.Rank() == i%n {
				must(comm.Revoke(ctx))
			} else if err := comm.Barrier().Wait(ctx); !errors.Is(err, mpicx.ErrRevoked) {
				return err
			}
			spans[i].add(begun, time.Now())
			all.pass()
			must(comm.Close(ctx))
		}
		world.Barrier().MustWait(ctx) // a rank that left before the others have heard of the revoke would be missing
		return nil
	})
	return median(spans)
}

// hensgen is the dissemination barrier (Hensgen, Finkel, Manber, 1988).
type hensgen struct{}

func (hensgen) Step(k int, x *collective.Exchange) bool {
	n := x.Size()
	x.Recv((x.Rank()+n-1<<k)%n, nil)
	x.Send((x.Rank()+1<<k)%n, nil)
	return 2<<k < n
}

func dissemination(n, times int) time.Duration {
	spans := make([]span, times)
	all := newGate(n)
	var wg sync.WaitGroup
	for _, side := range local.NewMortal(n) {
		wg.Go(func() {
			var world transport.Comm = side
			p := &paperRank{place: waiting.NewPlace()}
			for i := range spans {
				p.run(world, 2*i+1, collective.Barrier{})
				all.pass()
				begun := time.Now()
				p.run(world, 2*i+2, hensgen{})
				spans[i].add(begun, time.Now())
				all.pass()
			}
		})
	}
	wg.Wait()
	return median(spans)
}

// agree compares Agree with Allreduce of one int.
func agree(n int) func(config) result {
	return func(c config) result {
		times := c.times(max(10, 30_000/n))
		s := inTurn(c.times(15), func() time.Duration { return each(n, times, agreeOnce) },
			func() time.Duration { return each(n, times, allreduceOnce) })
		return result{s[0], s[1], ""}
	}
}

func agreeOnce(ctx context.Context, comm *mpicx.Comm) { comm.Agree(1).MustGet(ctx) }

func allreduceOnce(ctx context.Context, comm *mpicx.Comm) {
	var send, recv [1]int
	mpicx.Allreduce(comm, send[:], recv[:], mpicx.Sum).MustWait(ctx)
}

// each returns the average time of an operation, repeated n times or more.
func each(n, times int, op func(context.Context, *mpicx.Comm)) (each time.Duration) {
	ulfm(n, func(ctx context.Context, world *mpicx.Comm) error {
		op(ctx, world)
		start := time.Now()
		for range times {
			op(ctx, world)
		}
		if world.Rank() == 0 {
			each = time.Since(start) / time.Duration(times)
		}
		return nil
	})
	return each
}

// shrink compares Shrink with Agree, both on a communicator with one acknowledged dead rank: Shrink
// is the same agreement, and also makes a communicator.
func shrink(n int) func(config) result {
	return func(c config) result {
		times := c.times(max(3, 12_000/n))
		s := inTurn(c.times(9), func() time.Duration { return shrinks(n, times) },
			func() time.Duration { return agreesAfterDeath(n, times) })
		return result{s[0], s[1], "from the first rank in to the last one out"}
	}
}

func shrinks(n, times int) time.Duration {
	return afterDeath(n, times, func(ctx context.Context, world *mpicx.Comm) (done func()) {
		shrunk := world.Shrink().MustGet(ctx)
		return func() { must(shrunk.Close(ctx)) }
	})
}

func agreesAfterDeath(n, times int) time.Duration {
	return afterDeath(n, times, func(ctx context.Context, world *mpicx.Comm) (done func()) {
		agreeOnce(ctx, world)
		return func() {}
	})
}

// repairedOften compares barriers on a communicator that was repaired repeatedly with barriers on
// the world: past repairs must cost nothing.
func repairedOften(c config) result {
	const repairs, times = 40, 30_000
	s := inTurn(c.times(15), func() time.Duration { return repaired(repairs, times) },
		func() time.Duration { return repaired(0, times) })
	return result{s[0], s[1], ""}
}

func repaired(repairs, times int) (each time.Duration) {
	ulfm(2, func(ctx context.Context, comm *mpicx.Comm) error {
		for range repairs {
			must(comm.Revoke(ctx))
			comm = comm.Shrink().MustGet(ctx)
			comm.SetErrhandler(mpicx.ErrorsReturn)
		}
		comm.Barrier().MustWait(ctx)
		start := time.Now()
		for range times {
			comm.Barrier().MustWait(ctx)
		}
		if comm.Rank() == 0 {
			each = time.Since(start) / time.Duration(times)
		}
		return nil
	})
	return each
}

// afterDeath kills the middle rank, and returns the time of an operation on the survivors. The
// function that op returns is called before the next repetition, and not timed.
func afterDeath(n, times int, op func(context.Context, *mpicx.Comm) (done func())) time.Duration {
	spans := make([]span, times)
	ulfm(n, func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == n/2 {
			inject.Die(world)
		}
		survivors := world.Shrink().MustGet(ctx) // now all know the death
		world.AckFailed(1)
		for i := range spans {
			survivors.Barrier().MustWait(ctx)
			begun := time.Now()
			done := op(ctx, world)
			spans[i].add(begun, time.Now())
			done()
		}
		return nil
	})
	return median(spans)
}
