package mpicx

import (
	"runtime"
	"sync/atomic"
	"time"
)

// A yielder lets other goroutines run before one of a rank blocks. Whoever is to end its
// wait is often ready to run: then nobody need be blocked and woken, which costs more
// than all the rest of a short message. But who yields is behind all that are ready, and
// who is woken is before them. So where others keep the cores busy, yields are left out,
// for longer each time.
type yielder struct {
	left    atomic.Int32 // to be left out before the next; from 0 down it counts those that were not
	leftOut atomic.Int32 // the last time
}

const (
	slowYield   = 20 * time.Microsecond // on cores that are the ranks' own it takes less
	timedYields = 8                     // one in so many is timed: to read the clock costs half as much as to yield
)

var start = time.Now()

func (y *yielder) yield() {
	switch left := y.left.Add(-1); {
	case left > 0:
	case left%timedYields != 0:
		runtime.Gosched()
	default:
		began := time.Since(start)
		runtime.Gosched()
		y.took(time.Since(start) - began)
	}
}

// took says how long a yield took.
func (y *yielder) took(d time.Duration) {
	if d <= slowYield {
		y.leftOut.Store(y.leftOut.Load() / 2)
		return
	}
	out := min(max(2*y.leftOut.Load(), 1<<8), 1<<16)
	y.leftOut.Store(out)
	y.left.Store(out)
}
