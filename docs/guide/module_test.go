package guide_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What the guide and the README tell a reader to type in a module of their own works there. All
// programs of the guide compile in it, too.
func TestModuleOfYourOwn(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs sh and mpicxrun")
	}
	if testing.Short() {
		t.Skip("compiles the library in another module")
	}
	guide := toType(t, "README.md")
	require.True(t, contains(guide, toType(t, filepath.Join("..", "..", "README.md"))), "the README's lines are not among the guide's")

	clone, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	script := strings.Join(append(guide,
		"for chapter in ../go-mpicx/docs/guide/0*/; do cp -R $chapter .; done",
		"go mod tidy",
		"go vet ./..."), "\n")
	// The clone is this one, under its own path: what other tests have compiled is not compiled again.
	cmd := exec.CommandContext(t.Context(), "sh", "-e", "-c", strings.ReplaceAll(script, "../go-mpicx", clone))
	cmd.Dir = t.TempDir()
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "MPICX_") && !strings.HasPrefix(v, "GOFLAGS=") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "PWD="+cmd.Dir, "GOPROXY=off", "GOSUMDB=off", "GOWORK=off") // no network
	out, err := cmd.CombinedOutput()
	if strings.Contains(string(out), "module lookup disabled by GOPROXY=off") {
		t.Skipf("the module cache lacks a module: %s", out)
	}
	require.NoError(t, err, "%s", out)
}

// toType returns the lines of the blocks of shell commands in the part of a text about a module of
// one's own.
func toType(t *testing.T, text string) (lines []string) {
	part, shell := false, false
	for _, line := range readLines(t, text) {
		switch {
		case strings.HasPrefix(line, "#") && !shell:
			part = line == "## In a module of your own"
		case strings.HasPrefix(line, "```"):
			shell = part && line == "```sh"
		case shell:
			lines = append(lines, line)
		}
	}
	require.NotEmpty(t, lines, text)
	return lines
}
