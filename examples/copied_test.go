package examples_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A user's program begins as a copy of an example, in another module. Each example compiles there
// unchanged, and so do its tests. So none may import a package that is internal to this module.
func TestCopiesCompile(t *testing.T) {
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	requirements, err := os.ReadFile(filepath.Join(root, "go.mod"))
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
			write("go.mod", strings.Replace(string(requirements), "module github.com/mpicx/go-mpicx", "module example.com/copied", 1)+
				"require github.com/mpicx/go-mpicx v0.0.0\n\nreplace github.com/mpicx/go-mpicx => "+strconv.Quote(filepath.ToSlash(root))+"\n")
			write("go.sum", string(sums))
			require.NoError(t, os.CopyFS(filepath.Join(module, e.Name()), os.DirFS(e.Name())))
			// These are this module's requirements, so no other module is looked up.
			for _, args := range [][]string{{"build", "-o", os.DevNull, "./..."}, {"vet", "./..."}} {
				cmd := exec.Command("go", args...)
				cmd.Dir = module
				cmd.Env = append(os.Environ(), "GOWORK=off")
				out, err := cmd.CombinedOutput()
				require.NoError(t, err, "go %v: %s", args, out)
			}
		})
	}
	require.Positive(t, examples)
}

// The first command of the README downloads what a solver needs, and nothing that draws.
func TestModulesOfExamples(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "./krylov").Output()
	require.NoError(t, err)
	modules := strings.Fields(string(out))
	slices.Sort(modules)
	require.Equal(t, []string{
		"github.com/klauspost/cpuid/v2", "github.com/klauspost/reedsolomon", "github.com/mpicx/go-mpicx", "github.com/pkg/errors",
		"golang.org/x/sys", "golang.org/x/term",
	}, slices.Compact(modules))
	out, err = exec.Command("go", "list", "-deps", "./...").Output()
	require.NoError(t, err)
	require.NotContains(t, string(out), "gonum.org/v1/plot")
}
