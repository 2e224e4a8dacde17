package scenario

import (
	"testing"

	"github.com/cockroachdb/datadriven"
)

// Play plays the scripts in a directory. For each, begin returns what carries out a
// command by its verb and returns what it led to. Run the test with -rewrite to write
// that into the scripts, and read the difference.
func Play[Verb any](t *testing.T, dir string, verbs map[string]Verb, begin func() func(*testing.T, Verb, *datadriven.TestData) string) {
	datadriven.Walk(t, dir, func(t *testing.T, path string) {
		play := begin()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			verb, ok := verbs[d.Cmd]
			if !ok {
				d.Fatalf(t, "no such command: %s", d.Cmd)
			}
			if led := play(t, verb, d); led != "" {
				return led
			}
			return "ok"
		})
	})
}
