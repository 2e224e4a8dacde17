package examples_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// A user's program begins as a copy of an example, in another module. Each example compiles there
// unchanged, and so do its tests. So none may import a package that is internal to this module.
func TestCopiesCompile(t *testing.T) {
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	require.NoError(t, err)
	entries, err := os.ReadDir(".")
	require.NoError(t, err)
	examples := 0
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		examples++
		t.Run(e.Name(), func(t *testing.T) {
			t.Parallel()
			module := t.TempDir()
			write := func(name, text string) {
				require.NoError(t, os.WriteFile(filepath.Join(module, name), []byte(text), 0o644))
			}
			write("go.mod", "module example.com/copied\n\ngo 1.26.0\n\n"+
				"require github.com/mpicx/go-mpicx v0.0.0\n\nreplace github.com/mpicx/go-mpicx => "+strconv.Quote(filepath.ToSlash(root))+"\n")
			write("go.sum", string(sums))
			require.NoError(t, os.CopyFS(filepath.Join(module, e.Name()), os.DirFS(e.Name())))
			// The dependencies are in the module cache, because this module has been built.
			for _, args := range [][]string{{"build", "-o", os.DevNull, "./..."}, {"vet", "./..."}} {
				cmd := exec.Command("go", args...)
				cmd.Dir = module
				cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
				out, err := cmd.CombinedOutput()
				require.NoError(t, err, "go %v: %s", args, out)
			}
		})
	}
	require.Positive(t, examples)
}
