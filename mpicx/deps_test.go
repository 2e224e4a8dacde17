package mpicx_test

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"fmt"
	"go/importer"
	"io"
	"os"

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

// No file uses what is declared in a file that stands after it in docs/ARCHITECTURE.md: what is after
// it may change, and the file does not notice.
func TestFilesUseWhatIsBelow(t *testing.T) {
	text, err := os.ReadFile("../docs/ARCHITECTURE.md")
	require.NoError(t, err)
	_, list, _ := strings.Cut(string(text), "No file of `mpicx` uses")
	list, _, _ = strings.Cut(list, "\n\n")
	place := make(map[string]int)
	for i, m := range regexp.MustCompile("`([a-z0-9_]+[.]go)`").FindAllStringSubmatch(list, -1) {
		place[m[1]] = i
	}
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
	used := 0
	for id, of := range info.Uses {
		if from, to := positions.Position(id.Pos()).Filename, positions.Position(of.Pos()).Filename; of.Pkg() == this && from != to {
			require.Less(t, place[to], place[from], "%s uses %s of %s", from, of.Name(), to)
			used++
		}
	}
	require.NotZero(t, used)
}

// nothing imports packages that declare nothing.
type nothing struct{}

func (nothing) Import(name string) (*types.Package, error) {
	p := types.NewPackage(name, path.Base(name))
	p.MarkComplete()
	return p, nil
}

// What users can name or select needs no package that they can't import: neither go doc
// nor an editor shows the machinery. The error backends are no users' packages.
func TestFaceHasNoInternalTypes(t *testing.T) {
	paths := []string{own + "/mpicx", own + "/mpicx/mpicxtest", own + "/mpicx/inject", own + "/future"}
	out, err := exec.Command("go", append([]string{"list", "-deps", "-export", "-f", "{{.ImportPath}} {{.Export}}"}, paths...)...).Output()
	require.NoError(t, err)
	exports := make(map[string]string)
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		exports[path] = file
	}
	from := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	f := &face{seen: make(map[types.Type]bool)}
	for _, path := range paths {
		p, err := from.Import(path)
		require.NoError(t, err)
		for _, name := range p.Scope().Names() {
			f.object(p.Name(), p.Scope().Lookup(name))
		}
	}
	require.Empty(t, f.internal)
	require.Greater(t, f.objects, 200, "there is more to be seen")
}

// face is what users can see, from what is exported on.
type face struct {
	seen     map[types.Type]bool
	objects  int
	internal []string // what shows an internal type
}

func (f *face) object(in string, o types.Object) {
	if !o.Exported() {
		return
	}
	f.objects++
	where := in + "." + o.Name()
	if isInternal(o) {
		f.internal = append(f.internal, where)
	}
	f.see(where, o.Type())
}

func isInternal(o types.Object) bool {
	return o.Pkg() != nil && strings.HasPrefix(o.Pkg().Path(), own+"/internal/")
}

func (f *face) see(where string, t types.Type) {
	if f.seen[t] {
		return
	}
	f.seen[t] = true
	switch t := t.(type) {
	case *types.Alias:
		if f.name(where, t.Obj(), t.TypeArgs()) {
			f.see(where, types.Unalias(t))
		}
	case *types.Named:
		if !f.name(where, t.Obj(), t.TypeArgs()) {
			return
		}
		for p := range t.TypeParams().TypeParams() {
			f.see(where, p.Constraint())
		}
		if t.Obj().Pkg() == nil || !strings.HasPrefix(t.Obj().Pkg().Path(), own) {
			return
		}
		for m := range types.NewMethodSet(types.NewPointer(t)).Methods() { // promoted ones too
			f.object(where, m.Obj())
		}
		f.see(where, t.Underlying())
	case *types.Struct:
		for field := range t.Fields() {
			if f.object(where, field); field.Embedded() {
				f.see(where, field.Type().Underlying()) // its exported fields are promoted
			}
		}
	case *types.Interface:
		for m := range t.Methods() {
			f.object(where, m)
		}
		for e := range t.EmbeddedTypes() {
			f.see(where, e)
		}
	case *types.Union:
		for term := range t.Terms() {
			f.see(where, term.Type())
		}
	case *types.Signature:
		for p := range t.TypeParams().TypeParams() {
			f.see(where, p.Constraint())
		}
		f.see(where, t.Params())
		f.see(where, t.Results())
	case *types.Tuple:
		for v := range t.Variables() {
			f.see(where, v.Type())
		}
	case *types.Map:
		f.see(where, t.Key())
		f.see(where, t.Elem())
	case interface{ Elem() types.Type }: // pointers, slices, arrays, channels
		f.see(where, t.Elem())
	case *types.Basic, *types.TypeParam:
	default:
		panic(fmt.Sprintf("%s: %T", where, t))
	}
}

// name looks at a type's name, and says whether users may see it.
func (f *face) name(where string, o *types.TypeName, args *types.TypeList) bool {
	if isInternal(o) {
		f.internal = append(f.internal, fmt.Sprintf("%s has %s.%s", where, o.Pkg().Path(), o.Name()))
		return false
	}
	for a := range args.Types() {
		f.see(where, a)
	}
	return true
}
