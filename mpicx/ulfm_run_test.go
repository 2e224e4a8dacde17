package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
)

// A rank that leaves Run by an error corrupts what its peers use in the place of a
// world that is of no use any more.
func TestRunCorruptsWhatIsUsed(t *testing.T) {
	oneProcess(t)
	if mpicx.Backend != "ulfm" {
		t.Skip("the black channel cannot shrink")
	}
	bug := errors.New("a bug")
	err := mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 0 {
			return errors.New("the first")
		}
		if err := world.Barrier().Wait(ctx); !corrupted(err) {
			return fmt.Errorf("got %w", err)
		}
		small := world.Shrink().MustGet(ctx)
		if small.Rank() == 1 {
			return bug
		}
		err := small.Barrier().Wait(ctx)
		if c, ok := errors.AsType[*mpicx.CommCorruptedError](err); !ok || len(c.Failures) != 1 || c.Failures[0].Message != bug.Error() {
			return fmt.Errorf("got %w", err)
		}
		return nil
	}, mpicx.WithRanks(4))
	require.ErrorIs(t, err, bug)
	require.NotContains(t, err.Error(), "got")
}

// Under ErrorsReturn nobody is told why a rank left Run by an error, but that it is
// dead: who receives from anybody, too.
func TestErrorsReturnSeesWhoFailed(t *testing.T) {
	oneProcess(t)
	if mpicx.Backend != "ulfm" {
		t.Skip("the black channel sees nobody die")
	}
	bug := errors.New("a bug")
	err := mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
		world.SetErrhandler(mpicx.ErrorsReturn)
		if world.Rank() > 0 {
			return bug
		}
		recv := mpicx.Recv(world, []int{0}, mpicx.AnySource, 0)
		for range world.Size() - 1 {
			if err := recv.Wait(ctx); !errors.Is(err, mpicx.ErrProcFailedPending) {
				return fmt.Errorf("got %w", err)
			}
			world.AckFailed(len(world.Failed()))
		}
		return nil
	}, mpicx.WithRanks(2))
	require.ErrorIs(t, err, bug)
	require.NotContains(t, err.Error(), "got")
}

// A rank that returns while others need it, or panics outside of Guard, is dead
// for them: Shrink excludes it.
func TestReturningIsDying(t *testing.T) {
	mortal(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 1 {
			return nil
		}
		if err := deadIs(mpicx.Recv(world, []int{0}, 1, 0).Wait(ctx), 1); err != nil {
			return err
		}
		small, err := world.Shrink().Get(ctx)
		if err != nil || small.Size() != 2 {
			return fmt.Errorf("%v %w", small, err)
		}
		return exchange(ctx, small, 0)
	})
	t.Run("agree", func(t *testing.T) { // nobody waits for it by a message
		mortal(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
			if world.Rank()%2 == 0 {
				return nil
			}
			if err := deadIs(world.Agree(1).Wait(ctx), 0, 2); err != nil {
				return err
			}
			small, err := world.Shrink().Get(ctx)
			if err != nil || small.Size() != 2 {
				return fmt.Errorf("%v %w", small, err)
			}
			return exchange(ctx, small, 0)
		})
	})
	if mpicx.Backend != "ulfm" {
		return
	}
	oneProcess(t)
	err := mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 2 {
			panic("boom")
		}
		if err := world.Barrier().Wait(ctx); corruptedBy(err, 2) != nil || len(err.(*mpicx.CommCorruptedError).Failures) != 1 {
			return fmt.Errorf("got %w", err)
		}
		small, err := world.Shrink().Get(ctx)
		if err != nil || small.Size() != 3 {
			return fmt.Errorf("%v %w", small, err)
		}
		return small.Close(ctx)
	}, mpicx.WithRanks(4))
	var p *mpicx.PanicError
	require.ErrorAs(t, err, &p)
	require.Equal(t, 2, p.Rank)
	require.NotContains(t, err.Error(), "got")
}

// A rank that returns and is not needed any more is not missed.
func TestReturningIsNoFailure(t *testing.T) {
	propagating(t, 5, func(ctx context.Context, world *mpicx.Comm) error {
		me := world.Rank()
		for r := range me { // ranks return one after another
			if err := mpicx.Recv(world, []int{0}, r, 0).Wait(ctx); err != nil {
				return err
			}
		}
		for r := me + 1; r < 5; r++ {
			if err := mpicx.Send(world, []int{me}, r, 0).Wait(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}
