package mpicx_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// An alarm rings in place of the k-th operation that a rank begins in its transport. From then on it
// holds them.
type alarm struct {
	mu   sync.Mutex
	k    int // 0: off
	rung chan struct{}
	held []func()
}

// holds says whether it holds an operation.
func (a *alarm) holds(operation func()) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.k == 0 {
		return false
	}
	if a.k > 1 {
		a.k--
		return false
	}
	if a.held == nil {
		close(a.rung)
	}
	a.held = append(a.held, operation)
	return true
}

// off has what is held begin.
func (a *alarm) off() {
	a.mu.Lock()
	held := a.held
	a.k, a.held = 0, nil
	a.mu.Unlock()
	for _, begin := range held {
		begin()
	}
}

type alarmed struct {
	transport.Comm
	*alarm
}

func (c alarmed) TrySend(int, int, transport.Epoch, signature.Word, []byte) bool { return false }

func (c alarmed) Isend(r *transport.Request) {
	if !c.holds(func() { c.Comm.Isend(r) }) {
		c.Comm.Isend(r)
	}
}

func (c alarmed) Irecv(r *transport.Request) {
	if !c.holds(func() { c.Comm.Irecv(r) }) {
		c.Comm.Irecv(r)
	}
}

func (c alarmed) Sub(name transport.Name, members []int) (transport.Comm, error) {
	made, err := c.Comm.Sub(name, members)
	return alarmed{made, c.alarm}, err
}

// A signal at every message of what creates communicators: all ranks are told, and go on. With the
// ULFM backend all have what is created, or none.
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
	for _, backend := range []string{"blackchannel", "ulfm"} {
		for name, create := range creations {
			for n := 2; n <= 4; n++ {
				for r := range n {
					rung := 0
					for k := 1; signalAt(t, name, n, r, k, create, backend); k++ {
						rung++
					}
					require.Positive(t, rung)
				}
			}
		}
	}
}

// signalAt has rank r signal in place of its k-th operation, and says whether there was one.
func signalAt(t *testing.T, name string, n, r, k int, create func(c *mpicx.Comm) future.Waiter, backend string) bool {
	a := &alarm{rung: make(chan struct{})}
	wrap := hook.Transport[mpicx.Option](func(c transport.Comm) transport.Comm {
		if c.Rank() == r {
			return alarmed{c, a}
		}
		return c
	})
	mpicxtest.RunWith(t, n, func(ctx context.Context, world *mpicx.Comm) error {
		var f future.Waiter
		err := world.TryAll(ctx, func(ctx context.Context) error {
			if world.Rank() != r {
				f = create(world)
				return f.Wait(ctx)
			}
			a.mu.Lock()
			a.k = k
			a.mu.Unlock()
			f = create(world)
			select {
			case <-a.rung:
				return world.SignalError(ctx, 7)
			case <-f.Done():
				a.off()
				return f.Wait(ctx)
			}
		})
		if world.Rank() == r {
			a.off()
		}
		if err != nil && propagated(err, 7) != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		err = f.Wait(ctx)
		all, gathered := mpicx.AllgatherValue(world, err == nil).Get(ctx)
		if gathered != nil || backend == "ulfm" && len(slices.Compact(all)) > 1 {
			return fmt.Errorf("%s: who has it: %v, %w", name, all, gathered)
		}
		return exchange(ctx, world, 1)
	}, hook.Backend[mpicx.Option](backend), wrap)
	if t.Failed() {
		t.Fatalf("%s of %d ranks, signal at operation %d of rank %d", name, n, k, r)
	}
	select {
	case <-a.rung:
		return true
	default:
		return false
	}
}
