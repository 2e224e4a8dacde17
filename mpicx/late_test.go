package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/mpicx"
)

// D2: rank 0 has the result of a Shrink, and signals on the new communicator; rank 1
// signalled on the old one before it heard of the result. It gets that with the verdict,
// and only then its side. So rank 0, which waits on the new communicator, joins the round
// of the old one: that on the new one cannot end before.
func TestD2SignalOnWhatAPeerHasNotMade(t *testing.T) {
	oneProcess(t)
	synctest.Test(t, func(t *testing.T) {
		late := &mailbox{}
		proposed, has := make(chan struct{}), make(chan struct{})
		err := mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
			var d *mpicx.Comm
			if world.Rank() == 1 {
				late.hold()
				shrunk := world.Shrink()
				close(proposed)
				<-has
				mpicx.Throw(propagated(world.SignalError(ctx, 1), 1))
				var err error
				if d, err = shrunk.Get(ctx); err != nil { // P4: rank 0 has it
					return fmt.Errorf("Shrink: %w", err)
				}
			} else {
				<-proposed
				d = world.Shrink().MustGet(ctx)
				err := world.Try(ctx, func(ctx context.Context) error {
					close(has)
					<-ctx.Done() // it knows of rank 1's signal
					late.release()
					return d.SignalError(ctx, 2)
				})
				mpicx.Throw(explain(propagated(err, 1), "the old communicator"))
			}
			mpicx.Throw(explain(propagated(d.Barrier().Wait(ctx), 2), "the new communicator"))
			return d.Barrier().Wait(ctx)
		}, mpicx.WithRanks(2), hook.Backend[mpicx.Option]("ulfm"), hook.Transport[mpicx.Option](func(t transport.Comm) transport.Comm {
			if t.Rank() == 1 {
				t = &lateComm{t, late}
			}
			return t
		}))
		if err != nil {
			t.Error(err)
		}
	})
}

// A mailbox keeps what a rank's error channels are sent, while it is held.
type mailbox struct {
	mu   sync.Mutex
	held bool
	kept []func()
}

func (b *mailbox) hold() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held = true
}

// take calls deliver, now or once b is released.
func (b *mailbox) take(deliver func()) {
	b.mu.Lock()
	if b.held {
		b.kept = append(b.kept, deliver)
		b.mu.Unlock()
		return
	}
	b.mu.Unlock()
	deliver()
}

// release delivers what was kept, in order.
func (b *mailbox) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.kept) > 0 {
		deliver := b.kept[0]
		b.kept = b.kept[1:]
		b.mu.Unlock()
		deliver()
		b.mu.Lock()
	}
	b.held = false
}

// lateComm is a side whose error channels have a mailbox.
type lateComm struct {
	transport.Comm
	box *mailbox
}

func (c *lateComm) Sub(name transport.Name, members []int) (transport.Comm, error) {
	made, err := c.Comm.Sub(name, members)
	if err != nil {
		return nil, err
	}
	return &lateComm{made, c.box}, nil
}

func (c *lateComm) Listen(l transport.Listener) { c.Comm.Listen(&lateListener{l, c}) }

type lateListener struct {
	transport.Listener
	comm *lateComm
}

func (l *lateListener) Take(from int, payload []byte) {
	l.comm.box.take(func() {
		l.Listener.Take(from, payload)
		l.comm.Poke()
	})
}

// H5: rank 0 has the result of an Agree on a communicator that is revoked, closes that, and
// signals on the parent. Rank 1 hears of the signal before the result, and gets both.
func TestH5AgreeCloseAndSignal(t *testing.T) {
	oneProcess(t)
	synctest.Test(t, func(t *testing.T) {
		late := &mailbox{}
		proposed := make(chan struct{})
		err := mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
			c := dup(ctx, world)
			mpicx.Throw(c.Revoke(ctx))
			settle()
			if world.Rank() == 0 {
				<-proposed
				if flag, err := c.Agree(3).Get(ctx); flag != 1 || err != nil {
					return fmt.Errorf("Agree: %d %w", flag, err)
				}
				return first(c.Close(ctx), propagated(world.SignalError(ctx, 9), 9))
			}
			late.hold()
			agree := c.Agree(5)
			close(proposed)
			mpicx.Throw(propagated(agree.Wait(ctx), 9))
			late.release()
			if flag, err := agree.Get(ctx); flag != 1 || err != nil {
				return fmt.Errorf("Agree, after the error: %d %w", flag, err)
			}
			return c.Close(ctx)
		}, mpicx.WithRanks(2), hook.Backend[mpicx.Option]("ulfm"), hook.Transport[mpicx.Option](func(t transport.Comm) transport.Comm {
			if t.Rank() == 1 {
				t = lateChildren{t, late, func(name transport.Name) bool { return name != transport.ErrorChannelName() }}
			}
			return t
		}))
		if err != nil {
			t.Error(err)
		}
	})
}

// lateChildren is a side of the world. Only what is made with some names has a mailbox.
type lateChildren struct {
	transport.Comm
	box *mailbox
	is  func(transport.Name) bool
}

func (c lateChildren) Sub(name transport.Name, members []int) (transport.Comm, error) {
	made, err := c.Comm.Sub(name, members)
	if err != nil || !c.is(name) {
		return made, err
	}
	return &lateComm{made, c.box}, nil
}

// Goroutines that outlive the function of their Try, and communicators that the function has made.
func TestWhatOutlivesATry(t *testing.T) {
	oneProcess(t)
	own := errors.New("rank 1 fails")
	fails := func(w *mpicx.Comm) error {
		if w.Rank() == 1 {
			return own
		}
		return nil
	}
	for name, program := range map[string]func(context.Context, *mpicx.Comm) error{
		"the scope's end ends a Wait": func(ctx context.Context, w *mpicx.Comm) error {
			ended := make(chan error, 2)
			err := w.TryAll(ctx, func(ctx context.Context) error {
				never := mpicx.Recv(w, []int{0}, w.Rank(), 9)
				go func() { ended <- never.Wait(ctx) }()
				go func() {
					_, err := future.WaitAny(ctx, mpicx.Recv(w, []int{0}, w.Rank(), 9))
					ended <- err
				}()
				time.Sleep(time.Nanosecond) // until both wait
				return nil
			})
			return errors.Join(err, expect(<-ended, context.Canceled), expect(<-ended, context.Canceled))
		},
		"an operation keeps the error that has ended it": func(ctx context.Context, w *mpicx.Comm) error {
			var never *future.Future[mpicx.Status]
			first := w.TryAll(ctx, func(context.Context) error {
				never = mpicx.Recv(w, []int{0}, w.Rank(), 9)
				return fails(w)
			})
			var late error
			second := w.TryAll(ctx, func(ctx context.Context) error {
				if w.Rank() == 1 {
					return errors.New("another")
				}
				<-ctx.Done()
				late = never.Wait(ctx)
				return nil
			})
			if w.Rank() != 1 && told(late) != told(first) || told(second) == told(first) {
				return fmt.Errorf("got %q, then %q, and %q of an operation that the first has ended", told(first), told(second), told(late))
			}
			return nil
		},
		"it takes no error from the next Try": func(ctx context.Context, w *mpicx.Comm) error {
			var inside context.Context
			var never *future.Future[mpicx.Status]
			if err := w.TryAll(ctx, func(ctx context.Context) error {
				inside, never = ctx, mpicx.Recv(w, []int{0}, w.Rank(), 9)
				return nil
			}); err != nil {
				return err
			}
			if w.Rank() == 1 {
				return expect(w.TryAll(ctx, func(context.Context) error { return own }), own)
			}
			for w.Err() == nil {
				time.Sleep(time.Nanosecond)
			}
			_ = never.Wait(inside)
			if err := w.TryAll(ctx, func(context.Context) error { return nil }); err == nil {
				return errors.New("a goroutine of the Try before has taken the error")
			}
			return nil
		},
		"Close waits for nobody": func(ctx context.Context, w *mpicx.Comm) error {
			var closed error
			err := w.TryAll(ctx, func(ctx context.Context) error {
				d, err := w.Dup().Get(ctx)
				if err != nil || w.Rank() == 1 {
					return fails(w)
				}
				closed = d.Close(ctx)
				return nil
			})
			if closed != nil {
				return fmt.Errorf("Close: %w", closed)
			}
			if p, ok := errors.AsType[*mpicx.PropagatedError](err); !ok || len(p.Failures) != 1 || p.Failures[0].Rank != 1 {
				return fmt.Errorf("TryAll returns %w", err)
			}
			return nil
		},
		"an ancestor's error ends a Signal": func(ctx context.Context, w *mpicx.Comm) error {
			err := w.TryAll(ctx, func(ctx context.Context) error {
				if w.Rank() == 1 {
					time.Sleep(time.Nanosecond) // until the others signal
					return own
				}
				d := w.Dup().MustGet(ctx)
				return d.TryAll(ctx, func(ctx context.Context) error { return d.Signal(ctx, errors.New("of d")) })
			})
			if p, ok := errors.AsType[*mpicx.PropagatedError](err); !ok || len(p.Failures) != 1 || p.Failures[0].Rank != 1 {
				return fmt.Errorf("TryAll returns %w", err)
			}
			return nil
		},
		"an ancestor's error comes out of a Guard that has another": func(ctx context.Context, w *mpicx.Comm) error {
			d, err := w.Dup().Get(ctx)
			if err != nil {
				return err
			}
			err = d.Guard(ctx, func(ctx context.Context) error {
				if w.Rank() == 1 {
					time.Sleep(time.Nanosecond) // until the others wait
					return w.Signal(ctx, own)
				}
				err := d.Barrier().Wait(ctx)
				_ = d.Barrier().Wait(ctx) // until rank 1 has left its Guard
				return err
			})
			if _, ok := err.(*mpicx.PropagatedError); !ok {
				return fmt.Errorf("Guard returns %w", err)
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			bothBackends(t, func(t *testing.T, backend mpicx.Option) { inBubble(t, 3, program, backend) })
		})
	}
}

// So does the Wait of a goroutine whose context has ended in vain, by an error of an inner Try.
func TestWhatOutlivesATryInVain(t *testing.T) {
	oneProcess(t)
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		for i := range 200 {
			n := 2 + i%4
			require.NoError(t, mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
				ended := make(chan error, 1)
				mpicx.Throw(world.TryAll(ctx, func(ctx context.Context) error {
					_ = world.TryAll(ctx, failsAlone(world, 1, errors.New("lost")))
					go func() { ended <- mpicx.Recv(world, []int{0}, world.Rank(), 9).Wait(ctx) }()
					return nil
				}))
				if err := <-ended; !errors.Is(err, context.Canceled) {
					return fmt.Errorf("got %w", err)
				}
				return nil
			}, mpicx.WithRanks(n), backend))
		}
	})
}

// What a goroutine that outlives Run waits for ends at the latest with the job, whether it began before its rank's
// function returned, before the job's end or after.
func TestWhatOutlivesItsJob(t *testing.T) {
	oneProcess(t)
	own := errors.New("own")
	signal := func(ctx context.Context, w *mpicx.Comm) error { return w.Signal(ctx, own) }
	for name, call := range map[string]func(context.Context, *mpicx.Comm) error{
		"Signal": signal,
		"Signal in a Try": func(ctx context.Context, w *mpicx.Comm) error {
			return w.Try(ctx, func(ctx context.Context) error { return signal(ctx, w) })
		},
		"Agree":  func(ctx context.Context, w *mpicx.Comm) error { return w.Agree(1).Wait(ctx) },
		"Dup":    func(ctx context.Context, w *mpicx.Comm) error { return first(w.Dup().Wait(ctx), own) },
		"Shrink": func(ctx context.Context, w *mpicx.Comm) error { return first(w.Shrink().Wait(ctx), own) },
	} {
		t.Run(name, func(t *testing.T) {
			bothBackends(t, func(t *testing.T, backend mpicx.Option) {
				synctest.Test(t, func(t *testing.T) {
					for k := range 1000 {
						outlivesItsJob(t, k%2, backend, call)
					}
				})
			})
		})
	}
}

// outlivesItsJob has a goroutine of one rank make a call at about the time when the job ends.
func outlivesItsJob(t *testing.T, rank int, backend mpicx.Option, call func(context.Context, *mpicx.Comm) error) {
	t.Helper()
	told := make(chan error, 1)
	_ = mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == rank {
			go func() {
				defer close(told)
				hesitateMore()
				ctx, end := context.WithTimeout(context.Background(), time.Hour)
				defer end()
				told <- call(ctx, world)
			}()
		}
		hesitateMore()
		return nil
	}, mpicx.WithRanks(2), backend)
	if err, ok := <-told; ok { // the goroutine exits if its rank, which has returned, counts as dead
		require.Error(t, err)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
	}
}

// hesitateMore yields up to 30 times, which is about as long as a Run.
func hesitateMore() {
	for range rand.IntN(30) {
		runtime.Gosched()
	}
}
