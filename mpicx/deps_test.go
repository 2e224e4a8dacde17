package mpicx_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What only examples, tests or benchmarks need is not imported by what users
// import: see CONTRIBUTING.md.
func TestDependencies(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}",
		"./...", "../future", "../blackchannel").CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, path := range strings.Fields(string(out)) {
		own := strings.HasPrefix(path, "github.com/mpicx/go-mpicx/") && !strings.Contains(path, "/examples/")
		require.True(t, own || path == "github.com/pkg/errors", path)
	}
}
