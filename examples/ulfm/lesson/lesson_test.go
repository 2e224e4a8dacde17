package lesson

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/inject"
)

// A lesson prints what its ranks say. Without -tags ulfm it prints one line that says that it needs
// the tag.
func TestRun(t *testing.T) {
	t.Setenv("MPICX_RANKS", "")
	for _, test := range []struct {
		err    error
		exit   int
		stderr string
	}{
		{nil, 0, ""},
		{errors.New("a bug"), 1, "name: ranks 0, 1: a bug\n"},
	} {
		said := "rank 0: first\nrank 0: second, of 3\nrank 1: first\nrank 1: second, of 3\n"
		if mpicx.Backend != "ulfm" {
			said, test.exit = "", 1
			test.stderr = "name: needs -tags ulfm: the error backend blackchannel cannot see a process die\n"
		}
		var stdout, stderr bytes.Buffer
		exit := run("name", 3, func(_ context.Context, world *mpicx.Comm, out *Lines) error {
			world.SetErrhandler(mpicx.ErrorsReturn)
			if world.Rank() == 2 {
				inject.Die(world)
			}
			out.Say(world, "first")
			out.Say(world, "second, of %d", world.Size())
			return test.err
		}, &stdout, &stderr)
		require.Equal(t, test.exit, exit)
		require.Equal(t, test.stderr, stderr.String())
		require.Equal(t, said, stdout.String())
	}
}
