package mpicx_test

import (
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const own = "github.com/mpicx/go-mpicx"

// packages returns what the given packages need, themselves too, with the given tags: a line for
// each, of its module and its import path. Those of the standard library have no module.
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

// What only examples, tests or benchmarks need is not needed by a module that imports mpicx: see
// CONTRIBUTING.md, Dependencies. Package testing is needed by mpicxtest alone.
func TestDependencies(t *testing.T) {
	allowed := []string{own, "github.com/pkg/errors"}
	coding := []string{"github.com/klauspost/reedsolomon", "github.com/klauspost/cpuid/v2"} // of checkpoints
	for _, tags := range []string{"", "ulfm", "mpi", "mpi,ulfm", "mpi,ulfm,native"} {
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
		require.ElementsMatch(t, allowed, modules(".", "./mpicxtest", "./mpicxrun", "./inject", "../future", "../blackchannel", "../ulfmbackend"), tags)
		require.ElementsMatch(t, append(coding, allowed...), modules("./..."), tags)
		for _, p := range packages(t, tags, ".", "./inject", "../future") {
			require.NotEqual(t, "testing", p[1], tags)
		}
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
	shown := make(map[string]string) // by name: its type in full
	for _, path := range paths {
		p, err := from.Import(path)
		require.NoError(t, err)
		for _, name := range p.Scope().Names() {
			show(shown, p.Name(), p.Scope().Lookup(name))
		}
	}
	hidden := regexp.MustCompile(own + `/(internal/|[\w/]+\.[a-z])`) // methods of an unexported type could show more
	for name, text := range shown {
		require.NotRegexp(t, hidden, strings.ReplaceAll(text, "mpicx.options", "opaque"), name) // it has none
	}
	require.Greater(t, len(shown), 200, "there is more to be seen")
}

// show adds what users see of an object: its type, and if it is one, also its methods, promoted ones
// too, and its fields.
func show(shown map[string]string, in string, o types.Object) {
	name := in + "." + o.Name()
	if _, twice := shown[name]; twice || !o.Exported() {
		return
	}
	add := func(t types.Type) { shown[name] += types.TypeString(t, nil) + "; " }
	add(types.Unalias(o.Type()))
	if _, is := o.(*types.TypeName); !is {
		return
	}
	methods := types.NewMethodSet(types.NewPointer(o.Type()))
	switch t := o.Type().Underlying().(type) {
	case *types.Struct:
		showFields(shown, name, t)
	case *types.Interface:
		methods = types.NewMethodSet(t)
		for e := range t.EmbeddedTypes() {
			add(e)
		}
	default:
		add(t)
	}
	for m := range methods.Methods() {
		show(shown, name, m.Obj())
	}
}

// showFields adds the fields of a struct, promoted ones too.
func showFields(shown map[string]string, in string, t *types.Struct) {
	for f := range t.Fields() {
		show(shown, in, f)
		embedded := f.Type()
		if p, is := embedded.(*types.Pointer); is {
			embedded = p.Elem()
		}
		if t, is := embedded.Underlying().(*types.Struct); is && f.Embedded() {
			showFields(shown, in, t)
		}
	}
}
