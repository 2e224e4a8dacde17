package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/mpicx/go-mpicx/internal/buildtags"
	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// A deed is what one goroutine of a rank does. All but the first two end by the error of another.
type deed int

const (
	raises       deed = iota // returns an error
	signals                  // signals one
	waits                    // waits with the group's context
	waitsOutside             // waits with a context that no error ends
	computes                 // returns that its context has ended
	closes                   // returns another error when its context has ended
	asks                     // polls Err
	deeds
)

func (d deed) String() string {
	return [...]string{"raises", "signals", "waits", "waits outside", "computes", "closes", "asks"}[d]
}

// ends says whether the other goroutine of a rank ends when one returns an error.
func (d deed) ends() bool { return d != waitsOutside && d != asks }

// pairs has for each rank what its two goroutines do, and orders says when: goroutine k begins as
// number begin[k] of all, and of its rank's, goroutine last[rank] is the last to return.
type pairs []pair

type pair [2]deed

type orders struct{ begin, last []int }

// permutations calls f with each order of n.
func permutations(n int, f func(order []int)) {
	order := indices(n)
	var from func(int)
	from = func(k int) {
		if k == n {
			f(order)
		}
		for i := k; i < n; i++ {
			order[k], order[i] = order[i], order[k]
			from(k + 1)
			order[k], order[i] = order[i], order[k]
		}
	}
	from(0)
}

// TestExhaustiveGoroutines has two goroutines at each rank, in every order of beginning, and of
// returning at each rank.
func TestExhaustiveGoroutines(t *testing.T) {
	fakeTime(t)
	for _, backend := range []string{"blackchannel", "ulfm"} {
		t.Run(backend, func(t *testing.T) {
			t.Run("two ranks", func(t *testing.T) { t.Parallel(); everyTwoRanks(t, backend) })
			t.Run("three ranks", func(t *testing.T) { t.Parallel(); everyThreeRanks(t, backend) })
		})
	}
}

// everyTwoRanks plays all deeds of two ranks; where time is short, a part.
func everyTwoRanks(t *testing.T, backend string) {
	runs := 0
	for number := range deeds * deeds * deeds * deeds {
		p := pairs{{number % deeds, number / deeds % deeds}, {number / deeds / deeds % deeds, number / deeds / deeds / deeds}}
		if p[0][0] > p[0][1] || p[1][0] > p[1][1] || p[1][0] > signals || p[0][0] > p[1][0] && p[0][0] <= signals || p[0][0] == raises && !p[0][1].ends() || p[1][0] == raises && !p[1][1].ends() {
			continue // as another with goroutines or ranks exchanged, or nobody raises, or one waits for the other
		}
		permutations(4, func(begin []int) {
			for last := range 4 {
				if runs++; (testing.Short() || buildtags.Race) && runs%7 != 0 {
					continue
				}
				p.play(t, backend, orders{begin, []int{last % 2, last / 2}})
			}
		})
	}
}

// everyThreeRanks plays all deeds of three ranks of which one goroutine raises; where time is short, a part.
func everyThreeRanks(t *testing.T, backend string) {
	runs := 0
	for number := range 2 * deeds * deeds * deeds {
		how, beside, a, b := number%2, number/2%deeds, number/2/deeds%deeds, number/2/deeds/deeds
		if a > b || a < waits || beside < waits || beside != a && beside != b || how == raises && !beside.ends() {
			continue
		}
		permutations(6, func(begin []int) {
			if runs++; (testing.Short() || buildtags.Race) && runs%17 != 0 {
				return
			}
			pairs{{a, b}, {how, beside}, {b, a}}.play(t, backend, orders{begin, []int{runs % 2, runs / 2 % 2, runs / 4 % 2}})
		})
	}
}

// play runs the program, and checks that all goroutines of all ranks are told the same.
func (p pairs) play(t *testing.T, backend string, o orders) {
	if t.Failed() {
		return
	}
	n := len(p)
	told := make([][]error, n) // by rank: what operations returned, and then TryAll
	own := make([]bool, n)     // TryAll is to find errClose
	mpicxtest.RunWith(t, n, func(ctx context.Context, world *mpicx.Comm) error {
		me := world.Rank()
		seen := make([]error, 2, 3)
		err := world.TryAll(ctx, func(ctx context.Context) error {
			err := p[me].play(ctx, world, o.begin[2*me:], o.last[me], seen)
			own[me] = err == errClose
			return err
		})
		told[me] = append(seen, err)
		for range 2 { // nobody is a round apart
			err := world.TryAll(ctx, func(ctx context.Context) error { return world.Barrier().Wait(ctx) })
			mpicx.Throw(explain(err, "the next TryAll"))
		}
		return exchange(ctx, world, 1)
	}, hook.Backend[mpicx.Option](backend))
	what := fmt.Sprintf("%v, in the order %v, last %v", p, o.begin, o.last)
	require.False(t, t.Failed(), what)
	p.judge(t, told, own, what)
}

// play has one rank's goroutines do their deeds, and returns what their group does.
func (p pair) play(ctx context.Context, world *mpicx.Comm, begin []int, last int, seen []error) error {
	g, ctx := errgroup.WithContext(ctx)
	for k, d := range p {
		g.Go(func() (err error) {
			time.Sleep(time.Duration(begin[k]) * 100 * time.Microsecond)
			if seen[k], err = d.do(ctx, world, k); last == k && d != raises {
				time.Sleep(time.Millisecond)
			}
			return err
		})
	}
	return g.Wait()
}

// judge checks what all ranks were told.
func (p pairs) judge(t *testing.T, told [][]error, own []bool, what string) {
	var first []string
	for r := range p {
		for _, err := range slices.Backward(told[r]) {
			if err == nil { // it was no operation
				continue
			}
			v, ok := errors.AsType[*mpicx.PropagatedError](err)
			if mine, is := errors.AsType[*placeError](err); is && !ok && mine.rank == r && p[r][mine.place] == raises {
				continue // the other goroutine's error has ended the group's context before
			}
			require.True(t, ok, "rank %d was told %v: %s", r, err, what)
			if first == nil {
				first = texts(v.Failures)
			}
			require.Equal(t, first, texts(v.Failures), "rank %d: %s", r, what)
		}
		if own[r] {
			require.ErrorIs(t, told[r][2], errClose, "rank %d: %s", r, what)
		}
		require.NotNil(t, told[r][2], "rank %d: %s", r, what)
	}
	raised := false
	v, _ := errors.AsType[*mpicx.PropagatedError](told[0][2])
	for _, f := range v.Failures {
		place, is := f.Code-100, f.Code >= 100
		raised = raised || is
		require.True(t, is && p[f.Rank][place] <= signals || f.Message == errClose.Error() && slices.Contains(p[f.Rank][:], closes), "%v: %s", f, what)
	}
	require.True(t, raised, "%v: %s", v, what)
}

// do returns what an operation has returned, if there was one, and the goroutine's error.
func (d deed) do(ctx context.Context, c *mpicx.Comm, place int) (told, err error) {
	own := &placeError{c.Rank(), place}
	switch d {
	case raises:
		return nil, own
	case signals:
		err = c.Signal(ctx, own)
	case waits:
		err = mpicx.Recv(c, []int{0}, c.Rank(), 9).Wait(ctx)
	case waitsOutside:
		err = mpicx.Recv(c, []int{0}, c.Rank(), 9).Wait(context.Background())
	case computes:
		<-ctx.Done()
		return nil, ctx.Err()
	case closes:
		<-ctx.Done()
		return nil, errClose
	case asks:
		err = polled(c.Err)()
	}
	return err, err
}
