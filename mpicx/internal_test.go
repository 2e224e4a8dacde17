package mpicx_test

import (
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

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
