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

// Without -tags ulfm a lesson prints one line that says that it needs the tag.
func TestMainNeedsULFM(t *testing.T) {
	t.Setenv("MPICX_RANKS", "")
	for _, test := range []struct {
		err    error
		exit   int
		stderr string
	}{
		{nil, 0, ""},
		{errors.New("a bug"), 1, "name: ranks 0, 1: a bug\n"},
	} {
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
		if mpicx.Backend != "ulfm" {
			require.Equal(t, 1, exit)
			require.Empty(t, stdout.String())
			require.Equal(t, "name: needs -tags ulfm: the error backend blackchannel cannot see a process die\n", stderr.String())
			continue
		}
		require.Equal(t, test.exit, exit)
		require.Equal(t, test.stderr, stderr.String())
		require.Equal(t, `rank 0: first
rank 0: second, of 3
rank 1: first
rank 1: second, of 3
`, stdout.String())
	}
}
