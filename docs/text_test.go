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

// banned are phrases that no comment and no text has, each with what to write instead.
var banned = map[*regexp.Regexp]string{
	regexp.MustCompile(`\b([Gg]o|goes|going|went) on\b`):               "continues, stays pending, lasts",
	regexp.MustCompile(`(^|[.:;] )(Who|Those that) [a-z]`):             "a noun: the rank that, the process that",
	regexp.MustCompile(`\b(of|those that\b[^.:;]*) those that\b`):      "a noun: the ranks that, the messages that",
	regexp.MustCompile(`\b[Ww]hat ([\w-]+ ){1,4}ha(s|ve|d)([.:;)]|$)`): "the name of what it has",
	regexp.MustCompile(`\b[Ss]o many\b`):                               "the name of the number",
	regexp.MustCompile(`\bfor ever\b|\bwhatever on\b|—`):               "forever, any, a full stop",
}

// paragraphs returns what a Markdown file says, or the comments of another: a string for each paragraph.
func paragraphs(t *testing.T, path string) (all []string) {
	lines := prose(t, path)
	for i, line := range lines {
		if c := regexp.MustCompile(`^\s*(?://|#)(.*)|\s//(.*)|`).FindStringSubmatch(line); filepath.Ext(path) == ".md" {
			continue
		} else if lines[i] = c[1]; c[2] != "" {
			lines[i] = "\n" + c[2] + "\n"
		}
	}
	for p := range strings.SplitSeq(strings.Join(lines, "\n"), "\n\n") {
		all = append(all, strings.Join(strings.Fields(p), " "))
	}
	return all
}

// No comment and no text has a banned phrase. Texts are at most 120 columns wide, and comments of the
// product 100, with tabs of 4.
func TestComments(t *testing.T) {
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || path == "../internal/contract"): // the contract is given
			return filepath.SkipDir
		case d.IsDir() || !regexp.MustCompile(`[.](go|md|txt|h|yml)$|/(scripts/[\w-]+|Makefile)$`).MatchString(path):
			return nil
		}
		for _, p := range paragraphs(t, path) {
			for phrase, instead := range banned {
				require.NotRegexpf(t, phrase, p, "%s: write %s", path, instead)
			}
		}
		width, counted := 120, regexp.MustCompile(`^[^|!<\t]`) // without tables, pictures and output
		if regexp.MustCompile(`^../(blackchannel|future|internal|mpicx|ulfmbackend)/.*[.]go$`).MatchString(path) && !regexp.MustCompile(`_test[.]go$|/lab/|/transporttest/`).MatchString(path) {
			width, counted = 100, regexp.MustCompile(`^\s*// \S`)
		} else if filepath.Ext(path) != ".md" {
			return nil
		}
		for _, line := range prose(t, path) {
			if counted.MatchString(line) {
				require.LessOrEqualf(t, utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    ")), width, "%s: %s", path, line)
			}
		}
		return nil
	}))
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
