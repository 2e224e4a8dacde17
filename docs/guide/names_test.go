package guide_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every name that chapter 10 gives of mpicx exists: `mpicx.Send`, `Comm.Dup`.
func TestNames(t *testing.T) {
	names := make(map[string]bool)
	for _, dir := range []string{"mpicx", "future", "mpicx/checkpoint", "mpicx/inject", "mpicx/mpicxtest", "mpicx/recovery"} {
		files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(dir), "*.go"))
		require.NoError(t, err)
		for _, file := range files {
			if !strings.HasSuffix(file, "_test.go") {
				declared(t, file, names)
			}
		}
	}
	require.True(t, names["mpicx.Send"] && names["Comm.Dup"] && names["Future.Wait"] && names["ProcFailedError.Flag"] && !names["Comm.Send"])

	span := regexp.MustCompile("`[^`]+`")
	name := regexp.MustCompile(`[A-Za-z]\w*\.[A-Z]\w*`)
	others := regexp.MustCompile(`^(os|time|errors|runtime|unsafe)\.`)
	found := 0
	for i, line := range readLines(t, "10-coming-from-mpi.md") {
		for _, s := range span.FindAllString(line, -1) {
			for _, n := range name.FindAllString(s, -1) {
				if !others.MatchString(n) {
					require.True(t, names[n], "10-coming-from-mpi.md:%d: there is no %s", i+1, n)
					found++
				}
			}
		}
	}
	require.Greater(t, found, 150)
}

// declared adds the exported names of a file: package.Name, and Type.Method or Type.Field.
func declared(t *testing.T, file string, names map[string]bool) {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			of := f.Name.Name
			if d.Recv != nil {
				of = receiver(d.Recv.List[0].Type)
			}
			names[of+"."+d.Name.Name] = true
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.ValueSpec:
					for _, n := range s.Names {
						names[f.Name.Name+"."+n.Name] = true
					}
				case *ast.TypeSpec:
					names[f.Name.Name+"."+s.Name.Name] = true
					if st, ok := s.Type.(*ast.StructType); ok {
						for _, field := range st.Fields.List {
							for _, n := range field.Names {
								names[s.Name.Name+"."+n.Name] = true
							}
							if field.Names == nil { // embedded
								names[s.Name.Name+"."+receiver(field.Type)] = true
							}
						}
					}
				}
			}
		}
	}
}

// receiver returns the name of the type of a method or of an embedded field.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}
