package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// printed is what an example prints, as a document and as it is drawn.
func printed(t *testing.T, args ...string) (d document) {
	t.Helper()
	command := exec.Command("go", append([]string{"run"}, args...)...)
	command.Dir = "../../.." // the examples are of the root module
	out, err := command.Output()
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(out, &d))
	name := filepath.Join(t.TempDir(), "drawn.png")
	require.NoError(t, run([]string{name}, bytes.NewReader(out)))
	image, err := os.ReadFile(name)
	require.NoError(t, err)
	require.True(t, bytes.HasPrefix(image, []byte("\x89PNG")))
	return d
}

func TestDraw(t *testing.T) {
	t.Run("krylov", func(t *testing.T) {
		d := printed(t, "./examples/krylov", "-json", "-matrix", "testdata/matrices/poisson3d-20.mtx.gz", "-inject", "rank=1,iter=7,kind=nan")
		require.Equal(t, "poisson3d-20", d.Matrix.Name)
		r := d.Runs[1]
		require.Equal(t, "restart", r.Name)
		require.Greater(t, len(r.Residuals), 7)
		require.True(t, r.Injections[0].Fired)
		require.Equal(t, 7, r.Injections[0].Done)
		require.Equal(t, 7, r.Events[0].Done)
		require.NotEmpty(t, r.Events[0].Recovery)
	})
	t.Run("lanczos", func(t *testing.T) {
		d := printed(t, "./examples/lanczos", "-json", "-size", "12x12", "-iterations", "100", "-history", "10")
		require.Len(t, d.History, 10)
		require.Equal(t, d.Eigenvalues, d.History[9].Eigenvalues)
	})
}

func TestMistakes(t *testing.T) {
	for want, c := range map[string]struct{ name, input string }{
		`arguments ["x.pdf"], expected one name that ends in .png`:                                {"x.pdf", "{}"},
		`standard input: EOF, expected what an example prints with -json`:                         {"x.png", ""},
		`standard input has neither runs nor a history, expected what krylov -json prints, or la`: {"x.png", "{}"},
	} {
		require.ErrorContains(t, run([]string{c.name}, bytes.NewBufferString(c.input)), want)
	}
}
