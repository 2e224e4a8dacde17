package scenario

import (
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// Play plays the scripts in a directory. For each, begin returns what carries out a
// command by its verb and prints to out what it led to. Run the test with -rewrite to
// write that into the scripts, and read the difference.
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
