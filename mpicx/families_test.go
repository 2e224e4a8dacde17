package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// Communicators stay apart though as many errors lie between them as a byte counts.
func TestD1NamesDoNotComeAgain(t *testing.T) {
	mpicxtest.Run(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		var comms [3]*mpicx.Comm
		for i := range comms { // before, in between, and after
			comms[i] = dup(ctx, world)
			for code := range 128 {
				mpicx.Throw(signalled(ctx, world, code))
			}
		}
		old, young := comms[0], comms[2]
		got := []int{0, 0}
		received := []future.Waiter{mpicx.Recv(old, got[:1], mpicx.AnySource, 1), mpicx.Recv(young, got[1:], mpicx.AnySource, 1)}
		next := (world.Rank() + 1) % world.Size()
		mpicx.Send(young, []int{2}, next, 1)
		mpicx.Send(old, []int{1}, next, 1)
		mpicx.Throw(future.WaitAll(ctx, received...))
		require.Equal(t, []int{1, 2}, got)
		mpicx.Throw(young.Barrier().Wait(ctx))
		return signalled(ctx, old, 7)
	})
}

// Fifteen communicators, each derived from the last, all have errors of their own; the
// next is an error at all ranks.
func TestD1Generations(t *testing.T) {
	mpicxtest.Run(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		comms := []*mpicx.Comm{world}
		mpicx.Throw(world.TryAll(ctx, func(ctx context.Context) error {
			for len(comms) < 16 {
				comms = append(comms, comms[len(comms)-1].Dup().MustGet(ctx))
			}
			last := comms[15]
			return errors.Join(
				isMPIError(last.Dup().Wait(ctx), "Dup", mpicx.ClassOther, "generation 16, expected 0 to 15"),
				isMPIError(last.Split(0, 0).Wait(ctx), "Split", mpicx.ClassOther, "generation 16, expected 0 to 15"))
		}))
		for code, c := range comms {
			mpicx.Throw(signalled(ctx, c, code+1))
		}
		return comms[15].Barrier().Wait(ctx)
	})
}

// A corrupted communicator corrupts those derived from it that have the rank which unwound; the
// others report the error once and continue.
func TestCorruptedFamilies(t *testing.T) {
	fakeTime(t)
	mpicxtest.Run(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
		child := world.Split(world.Rank()/2, 0).MustGet(ctx)
		if world.Rank() == 1 {
			settle()
			_ = world.Guard(ctx, func(context.Context) error { return errors.New("unwound") })
		}
		mpicx.Throw(corruption(mpicx.Recv(child, []int{0}, mpicx.AnySource, 1).Wait(ctx), 1))
		if world.Rank() < 2 {
			return corruption(child.Barrier().Wait(ctx), 1)
		}
		return first(corruption(world.Barrier().Wait(ctx), 1), exchange(ctx, child, 0))
	})
}

// An operation that creates a communicator, or agrees, is pending on a child. Its rank has
// joined the parent's round, and then the child has an error. The operation ends with that
// error before the parent's round is over, which may need more errors of the child (P8).
func TestD2CreationEndsBeforeTheParentsRound(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	fakeTime(t)
	mpicxtest.Run(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		child := world.Split(world.Rank()%2, 0).MustGet(ctx)
		err := error(nil)
		switch world.Rank() {
		case 0:
			settle()
			settle() // rank 2 has joined the world's round; this rank owes that
			err = first(propagated(child.SignalError(ctx, 7), 7), propagated(child.SignalError(ctx, 8), 8))
		case 1:
			settle()
			return first(propagated(world.SignalError(ctx, 9), 9), exchange(ctx, child, 1), exchange(ctx, world, 2))
		case 2:
			err = first(propagated(child.Dup().Wait(ctx), 7), propagated(child.Barrier().Wait(ctx), 8))
		}
		return first(err, propagated(world.Barrier().Wait(ctx), 9), exchange(ctx, child, 1), exchange(ctx, world, 2))
	})
}

// The C shim reports a class by its place in a list of its own: that is this package's.
func TestClassesOfTheShim(t *testing.T) {
	shim, err := os.ReadFile("../internal/transport/mpi/shim.h")
	require.NoError(t, err)
	list := regexp.MustCompile(`int classes\[\] = \{([^}]*)\}`).FindSubmatch(shim)
	require.NotNil(t, list)
	names := strings.FieldsFunc(string(list[1]), func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
	for i, name := range names {
		require.Contains(t, name, "MPI_ERR_"+strings.ToUpper(mpicx.Class(i).String()))
	}
	require.Equal(t, fmt.Sprintf("Class(%d)", len(names)), mpicx.Class(len(names)).String(), "a class that the shim lacks")
}

// A text that several ranks have is said once.
func TestTextOfFailures(t *testing.T) {
	failures := func(texts ...string) (all []mpicx.Failure) {
		for r, text := range texts {
			all = append(all, mpicx.Failure{Rank: r / 2, Code: len(text) / 3, Message: text})
		}
		return all
	}
	for want, texts := range map[string][]string{
		"rank 0: a": {"a"},
		"rank 0: a; rank 0 (code 1): abc; ranks 1, 2: b":                {"a", "abc", "b", "b", "b"},
		"ranks 0, 1: a; rank 0: b; rank 1: c; rank 2: d; rank 2":        {"a", "b", "a", "c", "d", ""},
		"ranks 0, 1, 3: a; rank 0: b; rank 1: c; rank 2: d; and 3 more": {"a", "b", "a", "c", "d", "e", "a", "e", "f"},
	} {
		require.EqualError(t, &mpicx.PropagatedError{Failures: failures(texts...)}, "mpicx: error propagated from "+want)
	}
}

// The text of a corruption names a rank once: one that has ended by an error is in Dead as well,
// because Shrink leaves it out.
func TestTextOfACorruption(t *testing.T) {
	oneProcess(t)
	c := &mpicx.CommCorruptedError{Failures: []mpicx.Failure{{Rank: 2, Message: "no input"}}, Dead: []int{1, 2}}
	require.EqualError(t, c, "mpicx: communicator corrupted by rank 2: no input; dead: [1]")
	require.Equal(t, []int{1, 2}, c.Dead)
	err := mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 2 {
			return errors.New("no input")
		}
		err := world.Barrier().Wait(ctx)
		mpicx.Throw(corruptedBy(err, 2))
		return err
	}, mpicx.WithRanks(3), hook.Backend[mpicx.Option]("ulfm"))
	require.EqualError(t, err, "rank 2: no input\nranks 0, 1: mpicx: communicator corrupted by rank 2: no input")
}

// codedError has a code of its own.
type codedError struct{ error }

func (codedError) ErrorCode() int { return 77 }

// The class of an *MPIError comes to all ranks as the Code of its Failure.
func TestClassesOnTheirWay(t *testing.T) {
	mpicxtest.Run(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		wrong := func() error { return mpicx.Send(world, []int{1}, 99, 0).Wait(ctx) }
		for _, test := range []struct {
			fail func() error
			want int
		}{
			{wrong, int(mpicx.ClassRank)},
			{func() error { return mpicx.Send(world, []int{1}, 0, -5).Wait(ctx) }, int(mpicx.ClassTag)},
			{func() error { return mpicx.SendValue(world, func() {}, 1, 0).Wait(ctx) }, int(mpicx.ClassType)},
			{func() error { return fmt.Errorf("solve: %w", wrong()) }, int(mpicx.ClassRank)},
			{func() error { return codedError{wrong()} }, 77},
			{func() error { return errors.New("no code") }, 0},
		} {
			c := dup(ctx, world)
			for _, scope := range []func(context.Context, func(context.Context) error) error{c.Try, c.TryAll, c.Guard} {
				failures, _ := failuresOf(scope(ctx, fails(c, 1, test.fail())))
				if c.Rank() == 0 {
					require.Len(t, failures, 1)
					require.Equal(t, test.want, failures[0].Code)
				}
			}
		}
		return nil
	})
}

// P8, D1: the context of a Try ends by an error of its communicator, or of one from which that is
// derived, however far, at a rank that computes: when the error comes, at the beginning if it came
// before, and at the end of a Guard inside if it came within that.
func TestErrorEndsTheContextOfTry(t *testing.T) {
	fakeTime(t)
	for depth, when := range product(indices(4), []string{"now", "before", "within a Guard"}) {
		mpicxtest.Run(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
			c := world
			for range depth {
				c = c.Dup().MustGet(ctx)
			}
			settle() // until all have it
			if world.Rank() == 0 {
				return propagated(world.SignalError(ctx, 7), 7)
			}
			if when == "before" {
				settle()
			}
			err := c.Try(ctx, func(ctx context.Context) error {
				if when == "within a Guard" {
					mpicx.Throw(c.Guard(ctx, func(context.Context) error { settle(); return nil }))
				}
				<-ctx.Done() // it computes until then
				return ctx.Err()
			})
			return explain(propagated(err, 7), "depth %d, %s", depth, when)
		})
	}
}
