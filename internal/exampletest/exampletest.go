package exampletest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
)

const (
	ordered   = "With -tags ulfm this prints:\n"
	unordered = "With -tags ulfm this prints, in any order:\n"
)

// Check runs the examples of a file and compares their output with the comments at their ends.
// Under the black channel it only checks that the map contains all examples of the file.
func Check(t *testing.T, file string, examples map[string]func()) {
	t.Helper()
	names, want := read(t, file)
	require.Len(t, examples, len(names), "examples of %s", file)
	for _, name := range names {
		run := examples[name]
		require.NotNil(t, run, "%s of %s", name, file)
		t.Run(name, func(t *testing.T) {
			if mpicx.Backend != "ulfm" {
				t.Skip("the black channel cannot see a process die")
			}
			got := lines(printed(t, run))
			want, inOrder := strings.CutPrefix(want[name], ordered)
			if inOrder {
				require.Equal(t, lines(want), got)
				return
			}
			want, ok := strings.CutPrefix(want, unordered)
			require.True(t, ok, "expected %q at the end of %s", ordered, name)
			require.ElementsMatch(t, lines(want), got)
		})
	}
}

// read returns the names of a file's examples, in order, and the last comment of each.
func read(t *testing.T, file string) (names []string, comments map[string]string) {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
	require.NoError(t, err)
	comments = make(map[string]string)
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || !strings.HasPrefix(fn.Name.Name, "Example") {
			continue
		}
		names = append(names, fn.Name.Name)
		for _, c := range f.Comments {
			if fn.Body.Pos() < c.Pos() && c.End() < fn.Body.End() {
				comments[fn.Name.Name] = c.Text()
			}
		}
	}
	return names, comments
}

// printed returns the text that fn writes to the standard output.
func printed(t *testing.T, fn func()) string {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	text := make(chan string)
	go func() {
		b, _ := io.ReadAll(r)
		text <- string(b)
	}()
	stdout := os.Stdout
	os.Stdout = w
	defer func() { os.Stdout = stdout }()
	fn()
	require.NoError(t, w.Close())
	defer func() { _ = r.Close() }()
	return <-text
}

func lines(text string) []string {
	return slices.Collect(strings.Lines(strings.TrimRight(text, "\n") + "\n"))
}
