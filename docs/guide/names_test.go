package guide_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every name that chapter 10 gives of mpicx exists: `mpicx.Send`, `Comm.Dup`.
func TestNames(t *testing.T) {
	names := make(map[string]bool)
	for _, dir := range []string{"mpicx", "future", "mpicx/checkpoint", "mpicx/file", "mpicx/inject", "mpicx/mpicxtest", "mpicx/recovery"} {
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
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			of := f.Name.Name
			if n.Recv != nil {
				of = typeName(n.Recv.List[0].Type)
			}
			names[of+"."+n.Name.Name] = true
			return false
		case *ast.ValueSpec:
			for _, name := range n.Names {
				names[f.Name.Name+"."+name.Name] = true
			}
		case *ast.TypeSpec:
			names[f.Name.Name+"."+n.Name.Name] = true
			if s, ok := n.Type.(*ast.StructType); ok {
				fields(n.Name.Name, s, names)
			}
		}
		return true
	})
}

func fields(of string, s *ast.StructType, names map[string]bool) {
	for _, field := range s.Fields.List {
		for _, name := range field.Names {
			names[of+"."+name.Name] = true
		}
		if field.Names == nil { // embedded
			names[of+"."+typeName(field.Type)] = true
		}
	}
}

// typeName returns the name of the type of a method or of an embedded field.
func typeName(e ast.Expr) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(types.ExprString(e), "*"), "[")
	return name
}
