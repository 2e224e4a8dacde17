package mpicx

import (
	"cmp"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A stall says since when no rank of this process has moved. A rank moves when a goroutine of it
// begins to wait, and as long as none waits. The job stalls when no rank has moved for a while: all
// wait, and it seems that they wait for each other.
type stall struct {
	after time.Duration // how long no rank may move; 0: any time
	clock atomic.Uint32 // the time of the last look, in seconds since 1970, for the ranks' records

	mu    sync.Mutex
	since time.Time // no rank of this process has moved since
	next  time.Time // when to ask whether the others have; zero: they are not to be asked
	told  int       // how many stalls this process has told

	sources sources
}

// tick is how often the ranks are looked at.
func (s *stall) tick() time.Duration { return s.after / 20 }

// look notes the time.
func (s *stall) look() { s.clock.Store(uint32(time.Now().Unix())) }

// isDue notes whether a rank of this process has moved since the last look, and says whether it is
// time to ask the others, because none has for a while. The next time is after twice that while.
func (s *stall) isDue(moved bool) (due bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if moved {
		s.since, s.next = now, now.Add(s.after)
	}
	if due = !s.next.IsZero() && !now.Before(s.next); due {
		s.next = now.Add(now.Sub(s.since))
	}
	return due
}

// isNear says whether the ranks of this process have not moved for nearly long enough, and it has
// not told so.
func (s *stall) isNear() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.next.IsZero() && time.Since(s.since) >= s.after-3*s.tick()
}

// tell notes that this process tells the stall, and returns how many it has told.
func (s *stall) tell() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = time.Time{}
	s.told++
	return s.told
}

// sources are the lines of the program at which goroutines are. They are looked up at most once a
// second, and not if there are many goroutines, because all stop meanwhile.
type sources struct {
	mu  sync.Mutex
	at  time.Time
	all map[int]string // by goroutine
}

const manyGoroutines = 1000

// waitsIn are the packages in which a program waits, but which it does not consist of.
var waitsIn = []string{ownPackage, builtOnIt, "github.com/mpicx/go-mpicx/future.", "github.com/mpicx/go-mpicx/internal/", "internal/", "runtime.", "sync.", "time."}

func (l *sources) of(goroutine int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if runtime.NumGoroutine() <= manyGoroutines && (l.all == nil || time.Since(l.at) > time.Second) {
		l.at, l.all = time.Now(), make(map[int]string)
		stacks := make([]byte, 1<<21)
		for stack := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
			l.all[number(stack)] = outside(stack)
		}
	}
	return l.all[goroutine]
}

// thisGoroutine returns the number of the goroutine that calls it, as stacks show it.
func thisGoroutine() int {
	stack := make([]byte, 64)
	return number(string(stack[:runtime.Stack(stack, false)]))
}

// number returns the number in "goroutine 7 [running]:", where a stack begins.
func number(stack string) int {
	text, _, _ := strings.Cut(strings.TrimPrefix(stack, "goroutine "), " ")
	n, _ := strconv.Atoi(text)
	return n
}

// standard is the directory of the standard library, as stacks show it; "/" if they do not.
var standard = func() string {
	split := reflect.ValueOf(strings.Split).Pointer()
	file, _ := runtime.FuncForPC(split).FileLine(split)
	return cmp.Or(strings.TrimSuffix(file, "strings/strings.go"), "/")
}()

// outside returns the line of the innermost call in a stack that is neither in one of waitsIn nor
// in the standard library, as in "solver.go:88"; "": there is none.
func outside(stack string) string {
	calls := strings.Split(stack, "\n")[1:] // two lines each: the function, and a tab, its file and line
	for i := 0; i+1 < len(calls) && !strings.HasPrefix(calls[i], "created by "); i += 2 {
		place, _, _ := strings.Cut(strings.TrimPrefix(calls[i+1], "\t"), " +")
		if strings.HasPrefix(place, standard) {
			continue
		}
		if place = filepath.Base(place); strings.Contains(place, "_test.go:") ||
			!slices.ContainsFunc(waitsIn, func(p string) bool { return strings.HasPrefix(calls[i], p) }) {
			return place
		}
	}
	return ""
}
