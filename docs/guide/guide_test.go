package guide_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/buildtags"
	"github.com/mpicx/go-mpicx/mpicx"

	// What the programs stand on, so that a cached result of this test is not older.
	_ "github.com/mpicx/go-mpicx/mpicx/mpicxtest"
	_ "github.com/mpicx/go-mpicx/mpicx/recovery"
)

var rewrite = flag.Bool("rewrite", false, "write into the chapters what their programs print")

// A block is a fenced block of a chapter. One below a line that is only a link is an excerpt of
// that file. One of language console has commands, after "$ ", and what they print. Where a test
// has to do more, the line before says what:
//
//	<!-- run: d=$(mktemp -d) && go build -o $d … -->
//	<!-- run-if mpirun: mpirun … -->                              where there is a command mpirun
type block struct {
	file       string // of an excerpt
	needs      string // the command without which a test skips the block
	what       string // the command that a test runs
	first, end int    // its lines in the chapter, without the fences and the commands
	lines      []string
}

type chapter struct {
	path   string
	lines  []string
	blocks []block
}

var (
	isLink = regexp.MustCompile(`^\[[^]]+\]\(([^)#]+)\)$`)
	isRun  = regexp.MustCompile(`^<!-- run(?:-if (\S+?))?: (.+) -->$`)
)

// findBlocks finds the blocks of a chapter.
func (c *chapter) findBlocks(t *testing.T) {
	fence, count := -1, 0
	for i, line := range c.lines {
		if strings.HasPrefix(line, "<!--") || isLink.MatchString(line) || line == "```console" && !strings.HasPrefix(c.lines[i-1], "<!--") {
			count++
		}
		switch {
		case !strings.HasPrefix(line, "```"):
		case fence < 0:
			fence = i
		default:
			if b := c.block(fence, i); b.what != "" || b.file != "" {
				c.blocks = append(c.blocks, b)
			}
			fence = -1
		}
	}
	require.Negative(t, fence, "%s: a block without an end", c.path)
	require.Len(t, c.blocks, count, "%s: a comment or a link that is not before a fence, or a console without a command", c.path)
}

// block returns the block between two fences.
func (c *chapter) block(fence, end int) block {
	b := block{first: fence + 1, end: end}
	var commands []string
	for c.lines[fence] == "```console" && strings.HasPrefix(c.lines[b.first], "$ ") {
		commands = append(commands, strings.TrimPrefix(c.lines[b.first], "$ "))
		b.first++
	}
	b.lines, b.what = slices.Clone(c.lines[b.first:end]), strings.Join(commands, " && ")
	before := c.lines[max(fence-1, 0)]
	if m := isRun.FindStringSubmatch(before); m != nil {
		b.needs, b.what = m[1], m[2]
	}
	if m := isLink.FindStringSubmatch(before); m != nil {
		b.file = filepath.Join(filepath.Dir(c.path), m[1])
	}
	return b
}

// status is the exit status that the output of a block says.
func (b block) status() int {
	if last := b.lines[len(b.lines)-1]; last == "FAIL" || strings.HasPrefix(last, "exit status ") {
		return 1
	}
	return 0
}

// The chapters show what is in the programs, and what these print. `go test ./docs/guide -rewrite`
// writes outputs that differ into the chapters: read them before you commit them.
func TestChapters(t *testing.T) {
	chapters, err := filepath.Glob("*.md")
	require.NoError(t, err)
	require.NotEmpty(t, chapters)
	shown := make(map[string]bool)
	for _, path := range append(chapters, filepath.Join("..", "..", "README.md")) {
		c := &chapter{path: path, lines: readLines(t, path)}
		c.findBlocks(t)
		for _, b := range c.blocks {
			shown[strings.TrimPrefix(filepath.ToSlash(b.file), "../../docs/guide/")] = true // the README names it from the root
		}
		t.Run(strings.TrimSuffix(filepath.Base(path), ".md"), func(t *testing.T) {
			for _, b := range slices.Backward(c.blocks) { // from the last one, so that line numbers stay right
				t.Run(fmt.Sprintf("line %d", b.first), func(t *testing.T) { c.check(t, b) })
			}
		})
	}
	programs, err := filepath.Glob("*/main.go")
	require.NoError(t, err)
	more, err := filepath.Glob("*/*/main.go")
	require.NoError(t, err)
	for _, p := range append(programs, more...) {
		require.True(t, shown[filepath.ToSlash(p)], "%s is in no chapter", p)
	}
}

// check checks one block, or writes into the chapter what its command prints.
func (c *chapter) check(t *testing.T, b block) {
	has := strings.Join(b.lines, "\n")
	if b.file != "" {
		require.True(t, contains(readLines(t, b.file), b.lines), "%s:%d: %s has no such lines:\n%s", c.path, b.first, b.file, has)
		return
	}
	printed, same := b.run(t)
	if *rewrite && !matches(b.lines, printed) {
		c.lines = slices.Replace(c.lines, b.first, b.end, printed...)
		require.NoError(t, os.WriteFile(c.path, []byte(strings.Join(c.lines, "\n")+"\n"), 0o644))
		return
	}
	require.True(t, same, "%s:%d has\n%s\n\n%s printed\n%s", c.path, b.first, has, b.what, strings.Join(printed, "\n"))
}

// run returns the lines that the block's command prints, in the root of the repository, and whether
// they and the exit status are those of the block.
func (b block) run(t *testing.T) (printed []string, same bool) {
	if runtime.GOOS == "windows" {
		t.Skip("needs sh and mpicxrun")
	}
	if buildtags.Race || mpicx.Backend != "blackchannel" || mpicx.Transport != "local" {
		t.Skip("the command says its own tags: a test without any runs it")
	}
	if _, err := exec.LookPath(b.needs); b.needs != "" && err != nil {
		t.Skip(err)
	}
	for range 3 { // some programs have deadlines, which a machine that does much else may miss
		var status int
		printed, status = b.runOnce(t)
		if status == b.status() && matches(b.lines, printed) {
			return printed, true
		}
		t.Logf("line %d: %s ended with status %d, expected %d, and printed\n%s", b.first, b.what, status, b.status(), strings.Join(printed, "\n"))
	}
	return printed, false
}

func (b block) runOnce(t *testing.T) (printed []string, status int) {
	cmd := exec.CommandContext(t.Context(), "sh", "-c", b.what)
	cmd.Dir = filepath.Join("..", "..")
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "MPICX_") { // of the test's own run
			cmd.Env = append(cmd.Env, v)
		}
	}
	out, err := cmd.CombinedOutput()
	require.NotNil(t, cmd.ProcessState, "%s: %v", b.what, err)
	return strings.Split(strings.TrimRight(string(out), "\n"), "\n"), cmd.ProcessState.ExitCode()
}

var (
	duration = regexp.MustCompile(`\b(?:\d+h)?(?:\d+m)?\d+(?:\.\d+)?(?:ns|µs|ms|s)\b`)
	wildcard = "…"
)

// matches says whether a program has printed a block. A duration of the block stands
// for every duration, … for every text of a line, and … alone for every number of lines.
func matches(block, printed []string) bool {
	if len(block) == 0 {
		return len(printed) == 0
	}
	if block[0] == wildcard {
		return matches(block[1:], printed) || len(printed) > 0 && matches(block, printed[1:])
	}
	return len(printed) > 0 && pattern(block[0]).MatchString(printed[0]) && matches(block[1:], printed[1:])
}

func pattern(line string) *regexp.Regexp {
	quoted := regexp.QuoteMeta(duration.ReplaceAllString(line, "\x00"))
	quoted = strings.ReplaceAll(quoted, "\x00", `[0-9hm.]*\d(?:ns|µs|ms|s)`)
	return regexp.MustCompile("^" + strings.ReplaceAll(quoted, wildcard, ".*") + "$")
}

// contains says whether an excerpt is in a file, with the same indentation less in all of its
// lines.
func contains(file, excerpt []string) bool {
	for first := 0; first+len(excerpt) <= len(file); first++ {
		indent, same := "?", true
		for i, line := range excerpt {
			in := file[first+i]
			if line == "" || !strings.HasSuffix(in, line) {
				same = same && line == in
				continue
			}
			less := strings.TrimSuffix(in, line)
			if indent == "?" {
				indent = less
			}
			same = same && less == indent && strings.Trim(less, "\t") == ""
		}
		if same && len(excerpt) > 0 {
			return true
		}
	}
	return false
}

func readLines(t *testing.T, name string) []string {
	text, err := os.ReadFile(filepath.FromSlash(name))
	require.NoError(t, err)
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// The comparisons of TestChapters find what differs.
func TestMatches(t *testing.T) {
	for _, c := range []struct {
		block, printed string
		same           bool
	}{
		{"a\nb", "a\nb", true},
		{"a\nb", "a\nb\nc", false},
		{"a\nb\nc", "a\nb", false},
		{"a (b)", "a (c)", false},
		{"ended after 12.3ms", "ended after 1m2.5s", true},
		{"ended after 12.3ms", "ended after 12", false},
		{"rank … died", "rank 3 died", true},
		{"rank … died", "rank 3 lives", false},
		{"a\n…\nz", "a\nz", true},
		{"a\n…\nz", "a\nb\nc\nz", true},
		{"a\n…\nz", "a\nb\nc", false},
	} {
		require.Equal(t, c.same, matches(strings.Split(c.block, "\n"), strings.Split(c.printed, "\n")), "%q, %q", c.block, c.printed)
	}
	for _, c := range []struct {
		excerpt string
		in      bool
	}{
		{"\tb {\n\n\t\tc\n\t}", true},
		{"b {\n\n\tc\n}", true},
		{"b {\n\n\t\tc\n}", false},
		{"b {\n\tc\n}", false},
		{"{\n\n\tc", false},
		{"c", true},
		{"d", false},
	} {
		require.Equal(t, c.in, contains(strings.Split("a\n\tb {\n\n\t\tc\n\t}\nz", "\n"), strings.Split(c.excerpt, "\n")), "%q", c.excerpt)
	}
}
