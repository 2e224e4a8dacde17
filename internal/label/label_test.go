package label

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLines(t *testing.T) {
	for text, want := range map[string]string{
		"":         "",
		"a":        "[3] a\n",
		"a\n":      "[3] a\n",
		"a\n\nb":   "[3] a\n[3] \n[3] b\n",
		"\n":       "[3] \n",
		"ä %d\r\n": "[3] ä %d\r\n",
	} {
		require.Equal(t, want, string(Lines(3, []byte(text))), "%q", text)
	}
}

// Lines come whole, however the input is cut, and the lines of one Write come in one.
func TestWriter(t *testing.T) {
	var writes recorder
	var mu sync.Mutex
	a, b := New(0, &writes, &mu), New(1, &writes, &mu)
	fmt.Fprint(a, "one ")
	fmt.Fprint(b, "first\nsecond\nthi")
	fmt.Fprint(a, "two\nthree")
	fmt.Fprint(b, "rd\n")
	require.NoError(t, b.Close())
	require.NoError(t, a.Close())
	require.NoError(t, a.Close())
	require.Equal(t, recorder{"[1] first\n[1] second\n", "[0] one two\n", "[1] third\n", "[0] three\n"}, writes)
}

// A line without an end is not kept forever.
func TestLongLine(t *testing.T) {
	var out bytes.Buffer
	w := New(0, &out, new(sync.Mutex))
	fmt.Fprint(w, strings.Repeat("x", longest))
	require.Zero(t, out.Len())
	fmt.Fprint(w, "x")
	require.Equal(t, "[0] "+strings.Repeat("x", longest+1)+"\n", out.String())
}

func TestWriterFails(t *testing.T) {
	full := errors.New("full")
	w := New(0, failing{full}, new(sync.Mutex))
	_, err := fmt.Fprintln(w, "lost")
	require.ErrorIs(t, err, full)
}

type recorder []string

func (r *recorder) Write(b []byte) (int, error) {
	*r = append(*r, string(b))
	return len(b), nil
}

type failing struct{ error }

func (f failing) Write([]byte) (int, error) { return 0, f.error }
