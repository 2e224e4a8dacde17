package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// An error names the operation that it is of, on a closed communicator too, and the option that
// is nil.
func TestErrorsNameWhatIsWrong(t *testing.T) {
	oneProcess(t)
	err := mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
		child := dup(ctx, world)
		if err := child.Close(ctx); err != nil {
			return err
		}
		for op, err := range map[string]error{"Agree": child.Agree(1).Wait(ctx), "Shrink": child.Shrink().Wait(ctx)} {
			if m, ok := errors.AsType[*mpicx.MPIError](err); !ok || m.Op != op {
				return fmt.Errorf("%s: got %w", op, err)
			}
		}
		return nil
	}, mpicx.WithRanks(2))
	require.NoError(t, err)
	err = mpicx.Run(t.Context(), func(context.Context, *mpicx.Comm) error { return nil }, mpicx.WithRanks(1), nil)
	require.ErrorContains(t, err, "option 1 is nil")
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
		"rank 0: a; rank 0 (code 1): abc; ranks 1-2: b":                {"a", "abc", "b", "b", "b"},
		"ranks 0-1: a; rank 0: b; rank 1: c; rank 2: d; rank 2":        {"a", "b", "a", "c", "d", ""},
		"ranks 0-1, 3: a; rank 0: b; rank 1: c; rank 2: d; and 3 more": {"a", "b", "a", "c", "d", "e", "a", "e", "f"},
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
		if c, ok := errors.AsType[*mpicx.CommCorruptedError](err); !ok || !slices.Equal(c.Dead, []int{2}) {
			return fmt.Errorf("got %w", err)
		}
		return err
	}, mpicx.WithRanks(3), hook.Backend[mpicx.Option]("ulfm"))
	require.EqualError(t, err, "rank 2: no input\nranks 0-1: mpicx: communicator corrupted by rank 2: no input")
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
				err := scope(ctx, func(ctx context.Context) error {
					if c.Rank() == 1 {
						return test.fail()
					}
					return c.Barrier().Wait(ctx)
				})
				var failures []mpicx.Failure
				if p, ok := errors.AsType[*mpicx.PropagatedError](err); ok {
					failures = p.Failures
				} else if k, ok := errors.AsType[*mpicx.CommCorruptedError](err); ok {
					failures = k.Failures
				}
				if c.Rank() == 0 && (len(failures) != 1 || failures[0].Code != test.want) {
					return fmt.Errorf("%+v, expected code %d", err, test.want)
				}
			}
		}
		return nil
	})
}
