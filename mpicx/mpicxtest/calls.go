package mpicxtest

import (
	"maps"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// history has the calls of RunProcesses.
type history struct {
	mu    sync.Mutex
	count map[*testing.T]int
	of    map[string][][]Process // their results, by test
}

var calls = history{count: make(map[*testing.T]int), of: make(map[string][][]Process)}

// next returns the number of a test's next call.
func (h *history) next(t *testing.T) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n, seen := h.count[t]
	if !seen {
		delete(h.of, t.Name()) // from an earlier run of the test, with -count
		t.Cleanup(func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			delete(h.count, t)
		})
	}
	h.count[t] = n + 1
	return n
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
	parts := strings.Split(test, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	return strings.Join(parts, "/")
}
