package mpicx_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// packages returns what the given packages need, themselves too, with the given
// tags: a line for each, of its module and its import path. Those of the standard
// library have no module.
func packages(t *testing.T, tags string, patterns ...string) (lines [][]string) {
	t.Helper()
	args := append([]string{"list", "-deps", "-tags", tags, "-f", "{{with .Module}}{{.Path}}{{end}} {{.ImportPath}}"}, patterns...)
	out, err := exec.Command("go", args...).Output()
	require.NoError(t, err, "go %v", args)
	for line := range strings.Lines(string(out)) {
		module, path, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		lines = append(lines, []string{module, path})
	}
	return lines
}

// What only examples, tests or benchmarks need is not needed by a module that
// imports mpicx: see CONTRIBUTING.md, Dependencies. Package testing is needed by
// mpicxtest alone.
func TestDependencies(t *testing.T) {
	const own = "github.com/mpicx/go-mpicx"
	allowed := []string{own, "github.com/pkg/errors"}
	for _, tags := range []string{"", "ulfm", "mpi", "mpi,ulfm"} {
		t.Run(tags, func(t *testing.T) {
			var modules []string
			for _, p := range packages(t, tags, "./...", "../future", "../blackchannel", "../ulfmbackend") {
				module, path := p[0], p[1]
				if module != "" && !slices.Contains(modules, module) {
					modules = append(modules, module)
				}
				require.False(t, strings.HasPrefix(path, own+"/examples/") || strings.HasPrefix(path, own+"/internal/bench"), path)
			}
			require.ElementsMatch(t, allowed, modules)
			for _, p := range packages(t, tags, ".", "./inject", "../future") {
				require.NotEqual(t, "testing", p[1])
			}
		})
	}
}
