package mpicx_test

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const own = "github.com/mpicx/go-mpicx"

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
	allowed := []string{own, "github.com/pkg/errors"}
	coding := []string{"github.com/klauspost/reedsolomon", "github.com/klauspost/cpuid/v2"} // of checkpoints
	for _, tags := range []string{"", "ulfm", "mpi", "mpi,ulfm", "mpi,ulfm,native"} {
		t.Run(tags, func(t *testing.T) {
			modules := func(patterns ...string) (modules []string) {
				for _, p := range packages(t, tags, patterns...) {
					module, path := p[0], p[1]
					if module != "" && !slices.Contains(modules, module) {
						modules = append(modules, module)
					}
					require.False(t, strings.HasPrefix(path, own+"/examples/") || strings.HasPrefix(path, own+"/internal/lab/"), path)
				}
				return modules
			}
			require.ElementsMatch(t, allowed, modules(".", "./mpicxtest", "./mpicxrun", "./inject", "../future", "../blackchannel", "../ulfmbackend"))
			require.ElementsMatch(t, append(coding, allowed...), modules("./..."))
			for _, p := range packages(t, tags, ".", "./inject", "../future") {
				require.NotEqual(t, "testing", p[1])
			}
		})
	}
}

// No file uses what is declared in one that uses it: what is above may change, and what
// is below does not notice.
func TestFilesUseWhatIsBelow(t *testing.T) {
	p, err := build.ImportDir(".", 0)
	require.NoError(t, err)
	var files []*ast.File
	positions := token.NewFileSet()
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(positions, name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		files = append(files, f)
	}
	// Of other packages nothing is known, so there are errors; what is this package's is found.
	info := &types.Info{Uses: make(map[*ast.Ident]types.Object)}
	config := types.Config{Importer: nothing{}, Error: func(error) {}}
	this, _ := config.Check("mpicx", positions, files, info)
	uses := make(map[string]map[string]string) // by file and file below it: a name
	for _, name := range p.GoFiles {
		uses[name] = make(map[string]string)
	}
	for id, of := range info.Uses {
		from, to := positions.Position(id.Pos()).Filename, positions.Position(of.Pos()).Filename
		if of.Pkg() == this && from != to {
			uses[from][to] = of.Name()
		}
	}
	require.Contains(t, uses["scope.go"], "comm.go")
	for settled := true; settled; {
		settled = false
		for file, below := range uses {
			if len(below) == 0 {
				delete(uses, file)
				for _, above := range uses {
					delete(above, file)
				}
				settled = true
			}
		}
	}
	require.Empty(t, uses, "files that use each other in a circle, or such files, and a name in each")
}

// nothing imports packages that declare nothing.
type nothing struct{}

func (nothing) Import(name string) (*types.Package, error) {
	p := types.NewPackage(name, path.Base(name))
	p.MarkComplete()
	return p, nil
}
