package scenario

import (
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// Play runs the scripts in a directory. For each script, begin returns functions by verb, which
// carry out commands and print their outputs to out. A run of the test with -rewrite writes the
// outputs into the scripts; read the difference.
func Play[Verb any](t *testing.T, dir string, verbs map[string]Verb, begin func(out *strings.Builder) func(*testing.T, Verb, *datadriven.TestData)) {
	datadriven.Walk(t, dir, func(t *testing.T, path string) {
		var out strings.Builder
		play := begin(&out)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			verb, ok := verbs[d.Cmd]
			if !ok {
				d.Fatalf(t, "no such command: %s", d.Cmd)
			}
			out.Reset()
			if play(t, verb, d); out.Len() == 0 {
				return "ok"
			}
			return out.String()
		})
	})
}
