package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// A callee is a collective call and its text.
type callee struct {
	text string
	call func(ctx context.Context, c *mpicx.Comm) error
}

// callees are collective calls of which no two fit.
func callees(n int) []callee {
	f := func(k int) []float64 { return make([]float64, k) }
	group := func(ctx context.Context, c *mpicx.Comm) error { return c.Create(c.Group()).Wait(ctx) }
	return []callee{
		{"Barrier", barrier},
		{"Bcast(root 0, 3 × float64)", bcast[float64](3, 0)},
		{"Bcast(root 1, 3 × float64)", bcast[float64](3, 1)},
		{"Bcast(root 0, 4 × float64)", bcast[float64](4, 0)},
		{"Bcast(root 0, 3 × int32)", bcast[int32](3, 0)},
		{"Bcast(root 1, 7 × byte)", bcast[byte](7, 1)},
		{"Reduce(Sum, root 0, 3 × float64)", reduce(3, mpicx.Sum, 0)},
		{"Reduce(Sum, root 1, 3 × float64)", reduce(3, mpicx.Sum, 1)},
		{"Reduce(Max, root 1, 3 × float64)", reduce(3, mpicx.Max, 1)},
		{"Allreduce(Sum, 3 × float64)", allreduce[float64](3, mpicx.Sum)},
		{"Gather(root 0, 1 × int32)", gatherOf(1)},
		{"Scatter(root 1, 1 × float64)", func(ctx context.Context, c *mpicx.Comm) error {
			return mpicx.Scatter(c, f(n), f(1), 1).Wait(ctx)
		}},
		{"Allgather(1 × float64)", func(ctx context.Context, c *mpicx.Comm) error {
			return mpicx.Allgather(c, f(1), f(n)).Wait(ctx)
		}},
		{fmt.Sprintf("Alltoall(%d × float64)", n), func(ctx context.Context, c *mpicx.Comm) error {
			return mpicx.Alltoall(c, f(n), f(n)).Wait(ctx)
		}},
		{"Scan(Sum, 3 × float64)", func(ctx context.Context, c *mpicx.Comm) error {
			return mpicx.Scan(c, f(3), f(3), mpicx.Sum).Wait(ctx)
		}},
		{"BcastValue(root 0)", func(ctx context.Context, c *mpicx.Comm) error {
			return mpicx.BcastValue(c, "a", 0).Wait(ctx)
		}},
		{"Dup", func(ctx context.Context, c *mpicx.Comm) error { return c.Dup().Wait(ctx) }},
		{"Split", func(ctx context.Context, c *mpicx.Comm) error { return c.Split(0, 0).Wait(ctx) }},
		{"Create", group},
		{"TryAll", func(ctx context.Context, c *mpicx.Comm) error {
			return c.TryAll(ctx, func(context.Context) error { return nil })
		}},
		{"Close", func(ctx context.Context, c *mpicx.Comm) error { return c.Close(ctx) }},
	}
}

// afresh makes a duplicate for what is wrong, once all ranks have been told of what was so before.
func afresh(ctx context.Context, world *mpicx.Comm) (*mpicx.Comm, error) {
	for {
		var d *mpicx.Comm
		err := world.TryAll(ctx, func(ctx context.Context) (err error) {
			d, err = world.Dup().Get(ctx)
			return err
		})
		if _, again := errors.AsType[*mpicx.PropagatedError](err); !again {
			return d, err
		}
	}
}

// checkAll says whether all failures are errors of w, or also says that they are right.
func checkAll(err error, w *wrong, also func(mpicx.Failure) bool) error {
	p, ok := errors.AsType[*mpicx.PropagatedError](err)
	if !ok {
		return fmt.Errorf("%s: got %w", w.name(0), err)
	}
	for _, f := range p.Failures {
		if err := w.check(f.Message); err != nil && !w.isOfAnother(f.Message) && !also(f) {
			return fmt.Errorf("%s: %w", w.name(0), err)
		}
	}
	return nil
}

// isOfAnother says whether the text is of a mismatch that is found only in what follows the calls: an
// agreement, or the second call of a TryAll.
func (w *wrong) isOfAnother(text string) bool {
	if w.zero == "TryAll" || w.others == "TryAll" {
		return strings.Contains(text, "TryAll at rank") && strings.Contains(text, "both as collective call 2")
	}
	return strings.Contains(text, fmt.Sprintf("the ranks call %s and %s in the same place", min(w.zero, w.others), max(w.zero, w.others)))
}

func none(mpicx.Failure) bool { return false }

// Whichever calls two processes have made in one place, also if they do nothing then but wait for
// each other, all ranks are told.
func TestMismatchBetweenProcesses(t *testing.T) {
	for _, n := range []int{2, 3} {
		t.Run(fmt.Sprintf("%d ranks", n), func(t *testing.T) {
			mpicxtest.RunProcesses(t, n, func(ctx context.Context, world *mpicx.Comm) error {
				pairs := 0
				for _, zero := range callees(n) {
					for _, others := range callees(n) {
						if pairs++; zero.text == others.text || n > 2 && pairs%3 > 0 || testing.Short() && pairs%7 > 0 {
							continue
						}
						d, err := afresh(ctx, world)
						if err != nil {
							return err
						}
						w := wrong{zero: zero.text, others: others.text}
						err = world.TryAll(ctx, func(ctx context.Context) error {
							err := either(zero.call, others.call)(ctx, d)
							if err == nil { // it needed nobody
								err = d.Barrier().Wait(ctx)
							}
							return err
						})
						if err := checkAll(err, &w, none); err != nil {
							return err
						}
					}
				}
				_, err := afresh(ctx, world)
				return err
			})
		})
	}
}

// An error that a rank signals while others have made different calls comes to all, alone or with
// the mismatch; and then the communicator works.
func TestMismatchAndSignal(t *testing.T) {
	errAlarm := errors.New("an alarm")
	isAlarm := func(f mpicx.Failure) bool { return f.Message == errAlarm.Error() }
	race := func(rounds int) func(context.Context, *mpicx.Comm) error {
		return func(ctx context.Context, world *mpicx.Comm) error {
			all := callees(3)
			for round := range rounds {
				d, err := afresh(ctx, world)
				if err != nil {
					return err
				}
				zero, others := all[round%9], all[(round+4)%9]
				w := wrong{zero: zero.text, others: others.text}
				alarmed := false
				err = world.TryAll(ctx, func(ctx context.Context) error {
					switch world.Rank() {
					case 0:
						return then(zero.call, barrier)(ctx, d)
					case 1:
						return then(others.call, barrier)(ctx, d)
					}
					return errAlarm
				})
				for err != nil {
					if err := checkAll(err, &w, isAlarm); err != nil {
						return err
					}
					p, _ := errors.AsType[*mpicx.PropagatedError](err)
					for _, f := range p.Failures {
						alarmed = alarmed || isAlarm(f)
					}
					err = world.TryAll(ctx, func(ctx context.Context) error { return world.Barrier().Wait(ctx) })
				}
				if !alarmed {
					return fmt.Errorf("%s: no alarm", w.name(3))
				}
			}
			return nil
		}
	}
	t.Run("goroutines", func(t *testing.T) { mpicxtest.Run(t, 3, race(90)) })
	t.Run("processes", func(t *testing.T) { mpicxtest.RunProcesses(t, 3, race(18)) })
}

// A rank that has waited in vain for a collective operation may go on to an Agree, in which the
// others are, however long they have waited: that is no mismatch, as all of them may come to the
// operation later.
func TestAgreeAfterPatience(t *testing.T) {
	if mpicx.Backend != "ulfm" {
		t.Skip("Agree needs ulfm")
	}
	mpicxtest.RunProcesses(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		var met future.Waiter
		if world.Rank() != 0 {
			met = world.Barrier()
			patient, cancel := context.WithTimeout(ctx, 300*time.Millisecond) // some reminders come meanwhile
			defer cancel()
			if err := met.Wait(patient); !errors.Is(err, context.DeadlineExceeded) {
				return fmt.Errorf("Barrier: %w", err)
			}
		}
		if all, err := world.Agree(min(1, world.Rank())).Get(ctx); err != nil || all != 0 {
			return fmt.Errorf("Agree: %d, %w", all, err)
		}
		if met == nil {
			met = world.Barrier()
		}
		return met.Wait(ctx)
	})
}
