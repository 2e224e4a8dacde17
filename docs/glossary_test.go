package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The places that the glossary names exist, and each term has one row.
func TestGlossary(t *testing.T) {
	text, err := os.ReadFile("glossary.md")
	require.NoError(t, err)
	places := 0
	for _, m := range regexp.MustCompile("`([a-z0-9_]+(?:/[a-z0-9_.]+)+)`").FindAllStringSubmatch(string(text), -1) {
		places++
		_, err := os.Stat(filepath.Join("..", m[1]))
		require.NoError(t, err)
	}
	require.Positive(t, places)
	rows := make(map[string]bool)
	for line := range strings.Lines(string(text)) {
		if term, ok := strings.CutPrefix(line, "| **"); ok {
			term, _, _ = strings.Cut(term, "**")
			require.False(t, rows[term], term)
			rows[term] = true
			require.Equal(t, 5, strings.Count(line, "|"), line)
		}
	}
	require.NotEmpty(t, rows)
}
