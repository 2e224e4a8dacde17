package mpicx_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// Fprintf writes at rank 0, in rank order; lines of several calls do not mix.
func TestFprintf(t *testing.T) {
	for _, n := range fitting(1, 2, 3, 4, 5, 6, 7, 8, 9) {
		outputs := run(t, n, func(ctx context.Context, c *mpicx.Comm) (string, error) {
			var out bytes.Buffer
			err := errors.Join(
				c.Fprintf(ctx, &out, "%d of %d\n", c.Rank(), c.Size()),
				c.Fprintf(ctx, &out, "%s", strings.Repeat("line\n", c.Rank()%3)),
				c.Fprintf(ctx, &out, "end"))
			return out.String(), err
		})
		var first, second, third string
		for r := range n {
			first += fmt.Sprintf("[%d] %d of %d\n", r, r, n)
			second += strings.Repeat(fmt.Sprintf("[%d] line\n", r), r%3)
			third += fmt.Sprintf("[%d] end\n", r)
		}
		require.Equal(t, append([]string{first + second + third}, make([]string, n-1)...), outputs)
	}
}

// Output has whole lines of all ranks in one writer, which need not be safe for several.
func TestOutput(t *testing.T) {
	oneProcess(t)
	const n, lines = 8, 200
	var out bytes.Buffer
	mpicxtest.Run(t, n, func(ctx context.Context, c *mpicx.Comm) error {
		w := c.Output(&out)
		for i := range lines {
			fmt.Fprint(w, "line ")
			fmt.Fprintf(w, "%d of rank %d\n", i, c.Rank())
		}
		fmt.Fprint(w, "last")
		return w.Close()
	})
	next := make([]int, n)
	for line := range strings.Lines(out.String()) {
		rank := int(line[1] - '0')
		want := fmt.Sprintf("[%d] line %d of rank %[1]d\n", rank, next[rank])
		if next[rank] == lines {
			want = fmt.Sprintf("[%d] last\n", rank)
		}
		require.Equal(t, want, line)
		next[rank]++
	}
	require.Equal(t, slices.Repeat([]int{lines + 1}, n), next)
}

// A signal ends Fprintf at all ranks, and no line is missing.
func TestFprintfInterrupted(t *testing.T) {
	oneProcess(t)
	for n, signaller := range product([]int{2, 3, 5}, indices(5)) {
		if signaller >= n {
			continue
		}
		var out bytes.Buffer
		mpicxtest.Run(t, n, func(ctx context.Context, c *mpicx.Comm) error {
			var err error
			if c.Rank() == signaller {
				err = c.SignalError(ctx, 7)
			} else {
				err = c.Fprintf(ctx, &out, "rank %d", c.Rank())
			}
			return first(propagated(err, 7), c.Fprintf(ctx, &out, "again"))
		})
		for r := range n {
			require.Equal(t, r != signaller, strings.Contains(out.String(), fmt.Sprintf("[%d] rank %[1]d\n", r)), out.String())
			require.Equal(t, 1, strings.Count(out.String(), fmt.Sprintf("[%d] again\n", r)))
		}
	}
}

// Wrong calls, and a writer that fails.
func TestFprintfFails(t *testing.T) {
	oneProcess(t)
	mpicxtest.Run(t, 2, func(ctx context.Context, c *mpicx.Comm) error {
		var none *mpicx.Comm
		var noContext context.Context
		mpicx.Throw(isMPIError(c.Fprintf(ctx, nil, "x"), "Fprintf", mpicx.ClassOther, "nil writer"))
		mpicx.Throw(isMPIError(none.Fprintf(ctx, io.Discard, "x"), "Fprintf", mpicx.ClassComm, "nil communicator"))
		mpicx.Throw(isMPIError(c.Fprintf(noContext, io.Discard, "x"), "Fprintf", mpicx.ClassOther, "nil context"))
		require.PanicsWithValue(t, "mpicx: Output: nil communicator (Split returns it for Undefined)", func() { none.Output(io.Discard) })
		r, w := io.Pipe()
		full := errors.New("full")
		r.CloseWithError(full)
		require.Equal(t, c.Rank() == 0, errors.Is(c.Fprintf(ctx, w, "x"), full), "the writer of rank 0 fails")
		return exchange(ctx, c, 0)
	})
}

// Errhandler returns the handler that was set. A derived communicator begins with its parent's. One
// that does not exist is refused.
func TestErrhandler(t *testing.T) {
	mpicxtest.Run(t, 2, func(ctx context.Context, c *mpicx.Comm) error {
		require.Equal(t, mpicx.ErrorsPropagate, c.Errhandler())
		c.SetErrhandler(mpicx.ErrorsReturn)
		for _, h := range []mpicx.Errhandler{-1, 2, 99} {
			requireThrown(t, fmt.Sprintf("SetErrhandler: error handler %d, expected ErrorsPropagate (0) or ErrorsReturn (1)", h), func() { c.SetErrhandler(h) })
		}
		made := c.Dup().MustGet(ctx)
		c.SetErrhandler(mpicx.ErrorsPropagate)
		require.Equal(t, []mpicx.Errhandler{mpicx.ErrorsReturn, mpicx.ErrorsPropagate}, []mpicx.Errhandler{made.Errhandler(), c.Errhandler()})
		return made.Close(ctx)
	})
}
