package mpicx_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/internal/machine"
	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// long is a length of which messages are not buffered, and chains have two segments.
const long = 9000

// once carries out an operation, and says whether its result is what it should be.
func once(ctx context.Context, c *mpicx.Comm, operation string) error {
	return operations[operation].carriesOut(ctx, c, long, c.Size()-1, nil)
}

// everyAlgorithm runs a test with each algorithm of each operation.
func everyAlgorithm(t *testing.T, test func(t *testing.T, operation string)) {
	if machine.Processes() > 0 {
		t.Skip("faults are injected into goroutine ranks")
	}
	for _, op := range collective.Operations {
		for _, a := range op.Algorithms {
			t.Run(op.Name+"/"+a.Name, func(t *testing.T) {
				collective.Forced = map[string]string{op.Name: a.Name}
				defer func() { collective.Forced = nil }()
				test(t, op.Name)
			})
		}
	}
}

func mostRanks() int {
	if testing.Short() {
		return 3
	}
	return 5
}

// allRanks goes through all ranks of jobs of two to mostRanks ranks.
func allRanks() iter.Seq2[int, int] {
	return func(yield func(n, rank int) bool) {
		for n := 2; n <= mostRanks(); n++ {
			for rank := range n {
				if !yield(n, rank) {
					return
				}
			}
		}
	}
}

// A rank dies in every step of every algorithm. All are told, and the survivors carry it out.
func TestDeathInEveryStep(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	everyAlgorithm(t, func(t *testing.T, operation string) {
		program := func(ctx context.Context, world *mpicx.Comm) error {
			world.SetErrhandler(mpicx.ErrorsPropagate)
			err := world.TryAll(ctx, func(ctx context.Context) error { return once(ctx, world, operation) })
			if !corrupted(err) {
				return err
			}
			return once(ctx, world.Shrink().MustGet(ctx), operation)
		}
		for n, victim := range allRanks() {
			for step, missed := 1, 0; missed < 3; step++ { // some steps exchange nothing
				plan := fmt.Sprintf("kill %d in %s step %d", victim, operation, step)
				if len(mpicxtest.RunFaults(t, n, plan, program)) == 0 {
					missed++
				}
			}
		}
	})
}

// signaller has a rank signal an error before its k-th request for a collective operation since
// it was armed.
type signaller struct {
	k        int
	count    atomic.Int32
	armed    atomic.Bool
	signal   func()
	signaled chan error
}

type signallingComm struct {
	transport.Comm
	*signaller
}

func (c signallingComm) TrySend(int, int, transport.Epoch, signature.Word, []byte) bool { return false }

func (c signallingComm) Isend(r *transport.Request) {
	c.reach(r.Tag)
	c.Comm.Isend(r)
}

func (c signallingComm) Irecv(r *transport.Request) {
	c.reach(r.Tag)
	c.Comm.Irecv(r)
}

func (c signallingComm) Meet(r *transport.Request) bool {
	c.reach(transport.CollectiveTag(1)) // Meet sets the tag
	return c.Comm.(transport.Board).Meet(r)
}

func (c signallingComm) Sub(name transport.Name, members []int) (transport.Comm, error) {
	made, err := c.Comm.Sub(name, members)
	if err != nil {
		return nil, err
	}
	return signallingComm{made, c.signaller}, nil
}

func (s *signaller) reach(tag int) {
	if transport.IsCollective(tag) && s.armed.Load() && s.count.Add(1) == int32(s.k) {
		go s.signal()
	}
}

// A rank signals an error at every request of every algorithm: all get it, once, and the
// communicator serves at once.
func TestSignalAtEveryRequest(t *testing.T) {
	everyAlgorithm(t, func(t *testing.T, operation string) {
		once := func(ctx context.Context, world *mpicx.Comm) error { return once(ctx, world, operation) }
		bothBackends(t, func(t *testing.T, backend mpicx.Option) {
			for n, victim := range allRanks() {
				for k := 1; !signalsAt(t, n, victim, k, once, backend); k++ {
					continue
				}
			}
		})
	})
}

// signalsAt runs an operation in which the victim signals at its k-th request, if it comes so
// far: else it returns true.
func signalsAt(t *testing.T, n, victim, k int, once func(context.Context, *mpicx.Comm) error, backend mpicx.Option) (over bool) {
	s := &signaller{k: k, signaled: make(chan error, 1)}
	rankMain := func(ctx context.Context, world *mpicx.Comm) error {
		me := world.Rank()
		err := world.TryAll(ctx, func(ctx context.Context) error {
			if me == victim {
				s.signal = func() { s.signaled <- world.SignalError(context.Background(), 7) }
				s.armed.Store(true)
			}
			err := once(ctx, world)
			if me != victim {
				return err
			}
			s.armed.Store(false)
			if over = s.count.Load() < int32(k); !over {
				if signalled := <-s.signaled; err == nil {
					err = signalled
				}
			}
			return err
		})
		if err != nil {
			mpicx.Throw(propagated(err, 7))
		}
		told := mpicx.AllgatherValue(world, err != nil).MustGet(ctx)
		require.Len(t, slices.Compact(told), 1, "some ranks were told")
		return once(ctx, world)
	}
	inBubble(t, n, rankMain, backend, atRank(victim, func(c transport.Comm) transport.Comm { return signallingComm{c, s} }))
	if t.Failed() {
		t.Fatalf("%d ranks, rank %d signals at its request %d", n, victim, k)
	}
	return over
}

// A rank signals at every request of the operations that create communicators. All ranks are told,
// and continue. With the ULFM backend all have the new communicator, or none has.
func TestSignalWhileCreating(t *testing.T) {
	oneProcess(t)
	creations := map[string]func(c *mpicx.Comm) future.Waiter{
		"Create": func(c *mpicx.Comm) future.Waiter { return c.Create(c.Group().Excl(1)) },
		"CartCreate": func(c *mpicx.Comm) future.Waiter {
			return mpicx.CartCreate(c, []int{1, c.Size() - 1}, []bool{false, true})
		},
		"GraphCreate": func(c *mpicx.Comm) future.Waiter {
			n := c.Size()
			return mpicx.GraphCreate(c, []int{(c.Rank() + n - 1) % n}, []int{(c.Rank() + 1) % n})
		},
	}
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		for name, create := range creations {
			for n, victim := range product([]int{2, 3, 4}, indices(4)) {
				for k, over := 1, victim >= n; !over; k++ {
					var made []bool
					made, over = signalsWhileCreating(t, n, victim, k, create, backend)
					same := len(slices.Compact(made)) == 1
					require.True(t, same || !strings.HasSuffix(t.Name(), "ulfm"), "%s: %d ranks, rank %d signals at request %d", name, n, victim, k)
				}
			}
		}
	})
}

// signalsWhileCreating is signalsAt for what creates a communicator. It says which ranks have made
// one in spite of the error.
func signalsWhileCreating(t *testing.T, n, victim, k int, create func(c *mpicx.Comm) future.Waiter, backend mpicx.Option) (made []bool, over bool) {
	begun := make([]future.Waiter, n)
	made = make([]bool, n)
	over = signalsAt(t, n, victim, k, func(ctx context.Context, world *mpicx.Comm) error {
		f, first := create(world), &begun[world.Rank()]
		if *first == nil {
			*first = f
		} else { // the error is over
			made[world.Rank()] = (*first).Wait(ctx) == nil
		}
		return f.Wait(ctx)
	}, backend)
	return made, over
}
