package mpicxtest

import (
	"maps"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// history has the results of calls of RunProcesses that have returned, by test.
type history struct {
	mu sync.Mutex
	of map[string][][]Process
}

var calls = history{of: make(map[string][][]Process)}

// next returns the number of a test's next call.
func (h *history) next(t *testing.T) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	t.Cleanup(func() { // for the next run of the test, with -count
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.of, t.Name())
	})
	return len(h.of[t.Name()])
}

func (h *history) note(test string, all []Process) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.of[test] = append(h.of[test], all)
}

// before returns the results of the calls that a test, and the tests that it is part of, have made.
func (h *history) before(test string) map[string][][]Process {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := maps.Clone(h.of)
	maps.DeleteFunc(all, func(name string, _ [][]Process) bool {
		return name != test && !strings.HasPrefix(test, name+"/")
	})
	return all
}

// pattern returns the value of -test.run that selects one test alone.
func pattern(test string) string {
	return "^" + strings.ReplaceAll(regexp.QuoteMeta(test), "/", "$/^") + "$"
}
