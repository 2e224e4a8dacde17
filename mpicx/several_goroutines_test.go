package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/mpicx/go-mpicx/internal/buildtags"
	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
	"github.com/mpicx/go-mpicx/mpicx/recovery"
)

// several is what one rank's goroutines are told, round by round.
type several struct {
	world     *mpicx.Comm
	listeners errgroup.Group // goroutines that may outlive their round's function

	mu   sync.Mutex
	told [][]string // by round: what operations in goroutines and the scope have returned
}

// tells notes what one goroutine's operation has returned in a round.
func (s *several) tells(round int, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.told) <= round {
		s.told = append(s.told, nil)
	}
	s.told[round] = append(s.told[round], told(err))
	return err
}

// hesitate gives other goroutines a chance to be first.
func hesitate() {
	yield(rand.IntN(4))
	if processes == nil && rand.IntN(4) == 0 { // fake time: until all others are blocked
		time.Sleep(time.Duration(rand.IntN(3)))
	}
}

// What a rank does in a round. A rank with an own error raises it; the others do what only an
// error ends. Every function may return another error than the one that all ranks get.
var severalBodies = map[string]func(s *several, ctx context.Context, round int, own error) error{
	// An error group whose first error is that its context has ended.
	"errgroup": func(s *several, ctx context.Context, round int, own error) error {
		if own != nil {
			return own
		}
		g, ctx := errgroup.WithContext(ctx)
		g.Go(func() error {
			hesitate()
			return s.tells(round, mpicx.Recv(s.world, []int{0}, (s.world.Rank()+1)%s.world.Size(), 1).Wait(ctx))
		})
		g.Go(func() error { hesitate(); <-ctx.Done(); return ctx.Err() })
		return g.Wait()
	},
	// A goroutine that receives for as long as the scope's context lives.
	"listener": func(s *several, ctx context.Context, round int, own error) error {
		if own != nil {
			return own
		}
		message := mpicx.Recv(s.world, []int{0}, mpicx.AnySource, 1)
		s.listeners.Go(func() error {
			hesitate()
			_ = s.tells(round, message.Wait(ctx))
			hesitate()
			_ = s.tells(round, s.world.Signal(ctx, errors.New("late"))) // nobody gets it
			return nil
		})
		<-ctx.Done()
		hesitate()
		return ctx.Err()
	},
	// A goroutine that watches over the computation.
	"watcher": func(s *several, ctx context.Context, round int, own error) error {
		if own != nil {
			s.listeners.Go(func() error { hesitate(); return s.untold(s.tells(round, s.world.Signal(ctx, own))) })
			<-ctx.Done()
		}
		hesitate()
		if err := s.world.Barrier().Wait(ctx); err != nil { // else it was over before the error came
			return s.tells(round, err)
		}
		return nil
	},
	// What is closed fails too, because of the first error.
	"own error afterwards": func(s *several, ctx context.Context, round int, own error) error {
		if own != nil {
			return own
		}
		if err := s.tells(round, s.world.Barrier().Wait(ctx)); err != nil {
			hesitate()
			return errClose
		}
		return nil
	},
	// Several goroutines that ask for errors, each in its way, some with a context from outside.
	"askers": func(s *several, ctx context.Context, round int, own error) error {
		message := mpicx.Recv(s.world, []int{0}, mpicx.AnySource, 1)
		var g errgroup.Group
		for _, ask := range []func() error{
			func() error { return message.Wait(ctx) },
			func() error { return message.Wait(context.Background()) },
			func() error { return mpicx.Recv(s.world, []int{0}, s.world.Rank(), 2).Wait(context.Background()) },
			polled(func() error { _, err := message.Test(); return err }),
			polled(s.world.Err),
		} {
			g.Go(func() error { hesitate(); return s.tells(round, ask()) })
		}
		if own != nil {
			hesitate()
			_ = s.tells(round, s.world.Signal(ctx, own))
		}
		return g.Wait()
	},
}

func isTold(err error) bool { return hasType[*mpicx.PropagatedError](err) }

// untold returns an error if err is not one that all ranks have.
func (s *several) untold(err error) error {
	if !isTold(err) {
		return fmt.Errorf("rank %d was told %w", s.world.Rank(), err)
	}
	return nil
}

// A round is one error, of the ranks for which own is not nil. It returns what the scope has
// returned.
type roundOf = func(s *several, ctx context.Context, rounds int, fn func(ctx context.Context, round int) error, got func(round int, err error) error) error

func eachIn(scope func(*mpicx.Comm, context.Context, func(context.Context) error) error) roundOf {
	return func(s *several, ctx context.Context, rounds int, fn func(context.Context, int) error, got func(int, error) error) error {
		for k := range rounds {
			err := scope(s.world, ctx, func(ctx context.Context) error { return fn(ctx, k) })
			if err := got(k, err); err != nil {
				return err
			}
		}
		return nil
	}
}

var severalScopes = map[string]roundOf{
	"Try":    eachIn((*mpicx.Comm).Try),
	"TryAll": eachIn((*mpicx.Comm).TryAll),
	// Each attempt but the last of a Run is a round.
	"recovery": func(s *several, ctx context.Context, rounds int, fn func(context.Context, int) error, got func(int, error) error) error {
		const attempts = 10
		for first := 0; first < rounds; first += attempts {
			err := recovery.Run(ctx, s.world, func(ctx context.Context, a *recovery.Attempt) error {
				if len(a.Causes) != a.N {
					return a.GiveUp(fmt.Errorf("attempt %d has the causes %v", a.N, a.Causes))
				}
				var err error
				if a.N > 0 {
					err = got(first+a.N-1, a.Cause)
				}
				switch {
				case err != nil:
					return a.GiveUp(err)
				case a.N == attempts:
					return nil
				}
				return fn(ctx, first+a.N)
			}, recovery.MaxAttempts(attempts+1))
			if err != nil {
				return err
			}
		}
		return nil
	},
}

// An error belongs to the scope that handles it, no matter which of a rank's goroutines comes
// first: in each round all goroutines of all ranks, and all scopes, are told the same error, which
// is that of the round, and the communicator works in the next round.
//
// MPICX_ROUNDS=10000 plays that many rounds, with 2 to 8 ranks.
func TestSeveralGoroutines(t *testing.T) {
	rounds, _ := strconv.Atoi(os.Getenv("MPICX_ROUNDS"))
	long := rounds > 0
	switch {
	case long:
	case testing.Short() || buildtags.Race:
		rounds = 50
	default:
		rounds = 200
	}
	k := 0
	for scope, body := range product(slices.Sorted(maps.Keys(severalScopes)), slices.Sorted(maps.Keys(severalBodies))) {
		for who, backend := range product([]string{"one raises", "all raise"}, []string{"blackchannel", "ulfm"}) {
			if processes != nil && backend != mpicx.Backend {
				continue // processes have the backend of their build
			}
			k++
			sizes := []int{2 + k%3, 5 + k%4}
			if long {
				sizes = numbers(7, 2)
			}
			t.Run(fmt.Sprintf("%s/%s/%s/%s", scope, body, who, backend), func(t *testing.T) {
				for _, n := range fitting(sizes...) {
					playSeveral(t, n, rounds, backend, severalScopes[scope], severalBodies[body], who == "all raise")
				}
			})
		}
	}
}

func playSeveral(t *testing.T, n, rounds int, backend string, scope roundOf,
	body func(*several, context.Context, int, error) error, all bool) {
	t.Helper()
	heard := make([][][]string, n)
	mpicxtest.RunWith(t, n, func(ctx context.Context, world *mpicx.Comm) error {
		s := &several{world: world}
		closing := make([]bool, rounds)
		err := scope(s, ctx, rounds, func(ctx context.Context, k int) error {
			var own error
			if all || k%n == world.Rank() {
				own = fmt.Errorf("error %d", k)
			}
			err := body(s, ctx, k, own)
			closing[k] = err == errClose
			return err
		}, func(k int, err error) error {
			p, ok := errors.AsType[*mpicx.PropagatedError](err)
			if !ok || !all && len(p.Failures) != 1 || slices.ContainsFunc(p.Failures, func(f mpicx.Failure) bool {
				return f.Message != fmt.Sprint("error ", k) || !all && f.Rank != k%n
			}) || closing[k] && !errors.Is(err, errClose) {
				return fmt.Errorf("round %d, own error %t: got %w", k, closing[k], err)
			}
			return s.untold(s.tells(k, err))
		})
		mpicx.Throw(first(err, s.listeners.Wait()))
		heard[world.Rank()] = s.told
		return exchange(ctx, world, rounds)
	}, hook.Backend[mpicx.Option](backend))
	require.False(t, t.Failed(), "%d ranks, %s", n, backend)
	heard = gather(t, heard)
	for k, r := range product(indices(rounds), indices(n)) {
		for _, text := range heard[r][k] {
			require.Equal(t, heard[0][k][0], text, "round %d, rank %d of %d", k, r, n)
		}
	}
}
