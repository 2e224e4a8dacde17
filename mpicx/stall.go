package mpicx

import (
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// lines are the lines of the program at which goroutines are. They are looked up at most once a
// second, and not if there are many goroutines, because all stop meanwhile.
type lines struct {
	mu  sync.Mutex
	at  time.Time
	all map[string]string // by goroutine
}

const manyGoroutines = 1000

// waitsIn are the packages in which a program waits, but which it does not consist of.
var waitsIn = []string{ownPackage, builtOnIt, "github.com/mpicx/go-mpicx/future.", "github.com/mpicx/go-mpicx/internal/", "internal/", "runtime.", "sync.", "time."}

func (l *lines) of(goroutine string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if runtime.NumGoroutine() <= manyGoroutines && (l.all == nil || time.Since(l.at) > time.Second) {
		l.at, l.all = time.Now(), make(map[string]string)
		stacks := make([]byte, 1<<21)
		for stack := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
			l.all[number(stack)] = outside(stack)
		}
	}
	return l.all[goroutine]
}

// thisGoroutine returns the number of the goroutine that calls it, as stacks show it.
func thisGoroutine() string {
	stack := make([]byte, 64)
	return number(string(stack[:runtime.Stack(stack, false)]))
}

// number returns the number in "goroutine 7 [running]:", where a stack begins.
func number(stack string) string {
	n, _, _ := strings.Cut(strings.TrimPrefix(stack, "goroutine "), " ")
	return n
}

// outside returns the line of the innermost call in a stack that is not in one of waitsIn, as in
// "solver.go:88"; "": there is none.
func outside(stack string) string {
	calls := strings.Split(stack, "\n")[1:] // two lines each: the function, and a tab, its file and line
	for i := 0; i+1 < len(calls) && !strings.HasPrefix(calls[i], "created by "); i += 2 {
		place, _, _ := strings.Cut(calls[i+1], " +")
		if place = filepath.Base(place); strings.Contains(place, "_test.go:") ||
			!slices.ContainsFunc(waitsIn, func(p string) bool { return strings.HasPrefix(calls[i], p) }) {
			return place
		}
	}
	return ""
}
