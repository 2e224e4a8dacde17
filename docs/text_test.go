package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// texts returns all Markdown files of the repository, by their paths from here.
func texts(t *testing.T) (all []string) {
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if d.IsDir() && d.Name() == ".git" {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, ".md") {
			all = append(all, path)
		}
		return err
	}))
	require.NotEmpty(t, all)
	return all
}

// prose returns the lines of a file that are not in a block of code.
func prose(t *testing.T, path string) (lines []string) {
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	code := false
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			code = !code
		} else if !code {
			lines = append(lines, strings.TrimRight(line, "\n"))
		}
	}
	return lines
}

// What a text links to is there: the file, and the heading in it.
func TestLinks(t *testing.T) {
	for _, path := range texts(t) {
		for _, m := range regexp.MustCompile(`\]\(([^)#\s]*)(?:#([^)\s]*))?\)`).FindAllStringSubmatch(strings.Join(prose(t, path), "\n"), -1) {
			target, heading := m[1], m[2]
			if strings.Contains(target, "://") {
				continue
			}
			to := path
			if target != "" {
				to = filepath.Join(filepath.Dir(path), target)
			}
			_, err := os.Stat(to)
			require.NoErrorf(t, err, "%s links to %s", path, m[0])
			if heading != "" && strings.HasSuffix(to, ".md") {
				require.Containsf(t, anchors(t, to), heading, "%s links to %s", path, m[0])
			}
		}
	}
}

// The files and directories that a text names by their paths from the root are there.
func TestPaths(t *testing.T) {
	in := "(?:docs|examples|internal|mpicx|blackchannel|ulfmbackend|future|testdata|node|local|match)"
	for _, path := range texts(t) {
		for _, m := range regexp.MustCompile("`("+in+"/[a-z0-9_/*-]+(?:[.](?:go|md|h|c|sh|txt|svg|png))?)/?`").FindAllStringSubmatch(strings.Join(prose(t, path), "\n"), -1) {
			found, err := filepath.Glob(filepath.Join("..", m[1]))
			require.NoError(t, err)
			require.NotEmpty(t, found, "%s names %s", path, m[0])
		}
	}
}

// Each term of the glossary has one row.
func TestGlossary(t *testing.T) {
	rows := make(map[string]bool)
	for _, line := range prose(t, "glossary.md") {
		if term, ok := strings.CutPrefix(line, "| **"); ok {
			term, _, _ = strings.Cut(term, "**")
			require.False(t, rows[term], term)
			rows[term] = true
			require.Equal(t, 5, strings.Count(line, "|"), line)
		}
	}
	require.NotEmpty(t, rows)
}

// The map names each file of package mpicx, and no other.
func TestMapOfFiles(t *testing.T) {
	text, err := os.ReadFile("ARCHITECTURE.md")
	require.NoError(t, err)
	var named []string
	list := string(text[strings.Index(string(text), "No file of `mpicx`"):strings.Index(string(text), "## Where is it?")])
	for _, m := range regexp.MustCompile("`([a-z0-9_]+[.]go)`").FindAllStringSubmatch(list, -1) {
		named = append(named, m[1])
	}
	found, err := filepath.Glob("../mpicx/*.go")
	require.NoError(t, err)
	var files []string
	for _, path := range found {
		if name := filepath.Base(path); !strings.HasSuffix(name, "_test.go") && name != "doc.go" {
			files = append(files, name)
		}
	}
	require.ElementsMatch(t, files, named)
}

// anchors returns the names of a file's headings in links, as GitHub makes them.
func anchors(t *testing.T, path string) (all []string) {
	for _, line := range prose(t, path) {
		if title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") {
			name := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(title), "")
			all = append(all, strings.ReplaceAll(name, " ", "-"))
		}
	}
	return all
}

// No line is too long for a terminal or an editor, except in tables and pictures.
func TestLines(t *testing.T) {
	for _, path := range texts(t) {
		for _, line := range prose(t, path) {
			if !strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "![") && !strings.HasPrefix(line, "<!--") {
				require.LessOrEqualf(t, utf8.RuneCountInString(line), 120, "%s: %s", path, line)
			}
		}
	}
}

// Comments of the product are at most 100 columns wide, with tabs of 4, and are full sentences, but
// for lists and blocks of code. "Who" without a noun before it, and "goes on" for what continues, are
// the beginnings of sentences that nobody can read aloud.
func TestComments(t *testing.T) {
	banned := regexp.MustCompile(`(?://|[.:;]) Who [a-z]|\b(?:go|goes|going|went) on\b|\bthose that\b.*\bthose that\b`)
	comment := regexp.MustCompile(`(?m)^[ \t]*// \S.*$`)
	for _, dir := range []string{"blackchannel", "future", "internal", "mpicx", "ulfmbackend"} {
		require.NoError(t, filepath.WalkDir("../"+dir, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && (d.Name() == "lab" || d.Name() == "transporttest"):
				return filepath.SkipDir
			case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			text, err := os.ReadFile(path)
			for _, c := range comment.FindAllString(string(text), -1) {
				c = strings.ReplaceAll(c, "\t", "    ")
				require.NotRegexpf(t, banned, c, "%s", path)
				require.LessOrEqualf(t, utf8.RuneCountInString(c), 100, "%s: %s", path, c)
			}
			return err
		}))
	}
}

// What the texts build in the root of the repository is ignored by git.
func TestBuiltIsIgnored(t *testing.T) {
	ignored, err := os.ReadFile("../.gitignore")
	require.NoError(t, err)
	patterns := strings.Split(string(ignored), "\n")
	for _, path := range texts(t) {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, built := range regexp.MustCompile(`go build (?:-tags (?:\w+|"[\w ]+") )?(\./[\w./-]+)`).FindAllStringSubmatch(string(text), -1) {
			require.Contains(t, patterns, "/"+filepath.Base(built[1]), path)
		}
	}
}

// The README is read in some minutes, without its programs.
func TestReadme(t *testing.T) {
	require.LessOrEqual(t, len(strings.Fields(strings.Join(prose(t, "../README.md"), " "))), 1250)
}
