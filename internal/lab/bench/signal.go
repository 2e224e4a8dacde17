package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/mpicx"
)

// signal measures the paper's Figure 2: the time, at the rank that signals, to duplicate the
// communicator, give every rank its error, and close the duplicate.
func signal(n int) func(config) result {
	return func(c config) result {
		times := max(3, 12_000/n)
		var all [2]samples
		s := inTurn(c.times(9), func() time.Duration {
			took := mpicxSignals(n, times)
			all[0] = append(all[0], took...)
			return time.Duration(took.median())
		}, func() time.Duration {
			took := paperSignals(n, times)
			all[1] = append(all[1], took...)
			return time.Duration(took.median())
		})
		c.figures.addBoxes("figure2", n, "mpicx", all[0], "paper", all[1])
		ours, theirs := make(counts, n), make(counts, n)
		mpicxSignals(n, 1, hook.Transport[mpicx.Option](ours.wrap))
		paperSignals(n, 1, theirs.wrap)
		total, most := ours.totalAndMost()
		paperTotal, paperMost := theirs.totalAndMost()
		return result{s[0], s[1], fmt.Sprintf("messages %d to %d, most at a rank %d to %d", total, paperTotal, most, paperMost)}
	}
}

// backends measures the same under either error backend.
func backends(n int) func(config) result {
	return func(c config) result {
		times := max(3, 12_000/n)
		var all [2]samples
		var things [2]func() time.Duration
		for i, name := range []string{"ulfm", "blackchannel"} {
			things[i] = func() time.Duration {
				took := mpicxSignals(n, times, backend(name))
				all[i] = append(all[i], took...)
				return time.Duration(took.median())
			}
		}
		s := inTurn(c.times(9), things[:]...)
		c.figures.addBoxes("figure2-ulfm", n, "ulfm", all[0], "black channel", all[1])
		ulfm, black := make(counts, n), make(counts, n)
		mpicxSignals(n, 1, backend("ulfm"), hook.Transport[mpicx.Option](ulfm.wrap))
		mpicxSignals(n, 1, backend("blackchannel"), hook.Transport[mpicx.Option](black.wrap))
		total, most := ulfm.totalAndMost()
		blackTotal, blackMost := black.totalAndMost()
		return result{s[0], s[1], fmt.Sprintf("messages %d to %d, most at a rank %d to %d", total, blackTotal, most, blackMost)}
	}
}

func mpicxSignals(n, times int, opts ...mpicx.Option) samples {
	var took samples
	must(mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		for range times {
			world.Barrier().MustWait(ctx)
			start := time.Now()
			if err := signalOnce(ctx, world); err != nil {
				return err
			}
			if world.Rank() == 0 {
				took = append(took, float64(time.Since(start)))
			}
		}
		return nil
	}, append(opts, mpicx.WithRanks(n))...))
	return took
}

// signalOnce duplicates the communicator, signals an error at rank 0, which all ranks get, and
// closes the duplicate.
func signalOnce(ctx context.Context, world *mpicx.Comm) error {
	comm := world.Dup().MustGet(ctx)
	if err := signalOn(ctx, comm); err != nil {
		return err
	}
	return comm.Close(ctx)
}

// signalOn signals an error at rank 0, which all ranks get.
func signalOn(ctx context.Context, comm *mpicx.Comm) (err error) {
	if comm.Rank() == 0 {
		err = comm.SignalError(ctx, 666)
	} else {
		err = comm.Barrier().Wait(ctx)
	}
	return isSignalled(err)
}

// isSignalled returns an error unless err is what signalOn signals.
func isSignalled(err error) error {
	if p, ok := errors.AsType[*mpicx.PropagatedError](err); !ok || p.Failures[0].Code != 666 {
		return fmt.Errorf("got %w", err)
	}
	return nil
}

// wrapper disturbs or counts a transport.
type wrapper = func(transport.Comm) transport.Comm
