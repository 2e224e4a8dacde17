package mpicx_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/mpicx"
)

// toZero makes a communicator in which all others send to rank 0, and it to nobody.
func toZero(ctx context.Context, world *mpicx.Comm) (place, error) {
	from, to := numbers(world.Size()-1, 1), []int(nil)
	if world.Rank() > 0 {
		from, to = nil, []int{0}
	}
	g, err := mpicx.GraphCreate(world, from, to).Get(ctx)
	if err != nil {
		return place{}, err
	}
	return place{Comm: g.Comm, near: g}, nil
}

// withHalo is grid, and one call in it.
func withHalo(ctx context.Context, world *mpicx.Comm) (p place, err error) {
	if p, err = grid(ctx, world); err == nil {
		p.halo, err = mpicx.NewHalo[float64](p.grid, []int{4}, 1, false).Get(ctx)
	}
	return p, err
}

// union makes a communicator of two groups: rank 0, and the others.
func union(ctx context.Context, world *mpicx.Comm) (place, error) {
	local, bridge, remoteLeader := beside(ctx, world, 1)
	ic, err := mpicx.CreateIntercomm(local, 0, bridge, remoteLeader, 0).Get(ctx)
	if err != nil {
		return place{}, err
	}
	return place{Comm: ic.Union(), inter: ic}, nil
}

// inUnions are all calls that the ranks of a union of two groups can make.
func inUnions(n int) []callee {
	return append(callees(n), callee{"Merge", at(func(p place) *future.Future[*mpicx.Comm] { return p.inter.Merge(false) })})
}

var exchanged = callee{"Halo(float64)", at(func(p place) *future.Future[struct{}] { return p.halo.Start(make([]float64, p.halo.Len())) })}

// Ranks that are in a TryAll, which is two calls, are told if another rank has made a call in its
// place that waits for nobody.
func TestMismatchWithTryAll(t *testing.T) {
	fakeTime(t)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorContains(t, mpicx.Run(ctx, func(ctx context.Context, world *mpicx.Comm) error {
			if world.Rank() > 0 {
				return world.TryAll(ctx, func(context.Context) error { return nil })
			}
			world.Dup().MustWait(ctx)
			return mpicx.Recv(world, []int{0}, 1, 0).Wait(ctx) // the error ends it
		}, mpicx.WithRanks(3), hook.Backend[mpicx.Option]("blackchannel")), "Dup at rank 0, TryAll at rank")
		require.NoError(t, ctx.Err())
	})
}

// A meeting is where ranks make calls: rank 0 one of these, and the others one of those.
type meeting struct {
	name         string
	make         func(context.Context, *mpicx.Comm) (place, error)
	zero, others []callee
	number       int // of the calls
}

// Whichever calls goroutine ranks have made in one place, also if they do nothing then but wait for
// each other, a plain Run ends with an error that has both.
func TestMismatchBetweenGoroutines(t *testing.T) {
	fakeTime(t)
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		for _, n := range []int{2, 3} {
			for _, m := range []meeting{
				{"grid", grid, inGrids(n), inGrids(n), 1},
				{"graph", toZero, neighborly(n-1, 0), callees(n), 1},
				{"halo", withHalo, []callee{exchanged}, inGrids(n), 2},
				{"others' halo", withHalo, inGrids(n), []callee{exchanged}, 2},
				{"union", union, inUnions(n), inUnions(n), 1},
			} {
				t.Run(fmt.Sprintf("%s of %d", m.name, n), func(t *testing.T) { m.play(t, n, backend) })
			}
		}
	})
}

// play has n ranks make each pair of different calls.
func (m meeting) play(t *testing.T, n int, backend mpicx.Option) {
	pairs := 0
	for zero, others := range product(m.zero, m.others) {
		if pairs++; zero.text == others.text || testing.Short() && pairs%7 > 0 {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			err := mpicx.Run(ctx, func(ctx context.Context, world *mpicx.Comm) error {
				p, err := m.make(ctx, world)
				if err != nil {
					return err
				}
				return eitherCall(ctx, p, &zero, &others)
			}, mpicx.WithRanks(n), backend)
			w := wrong{zero: zero.text, others: others.text, number: m.number}
			require.Error(t, err, w.name(n))
			for _, line := range strings.Split(err.Error(), "\n") {
				if err := w.check(line); err != nil && !w.isOfAnother(line) {
					require.NoError(t, err, w.name(n))
				}
			}
			require.NoError(t, ctx.Err(), w.name(n))
		})
	}
}

// The test covers all kinds of calls of the program that are compared.
func TestAllCallsMeetAllOthers(t *testing.T) {
	missing := make(map[string]bool)
	for k := signature.Agree; !strings.HasPrefix(k.String(), "Kind("); k++ {
		missing[k.String()] = true
	}
	for _, k := range []signature.Kind{signature.Agree, signature.AgreeFailed, signature.Shrink, signature.Replace,
		signature.Release, signature.Background} {
		delete(missing, k.String())
	}
	for _, c := range slices.Concat(inGrids(3), inUnions(3), []callee{exchanged}) {
		name, _, _ := strings.Cut(c.text, "(")
		delete(missing, name)
	}
	require.Empty(t, missing)
}

// In real time, too.
func TestMismatchOfRanksThatWait(t *testing.T) {
	oneProcess(t)
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		w := wrong{"Reduce(Sum, root 0, 3 × float64)", "Reduce(Sum, root 1, 3 × float64)", 0, either(reduce(3, mpicx.Sum, 0), reduce(3, mpicx.Sum, 1))}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := mpicx.Run(ctx, w.program, mpicx.WithRanks(2), backend)
		require.Error(t, err)
		for _, line := range strings.Split(err.Error(), "\n") {
			require.NoError(t, w.check(line))
		}
	})
}
