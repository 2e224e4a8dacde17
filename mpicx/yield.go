package mpicx

import (
	"runtime"
	"sync/atomic"
	"time"
)

// A yielder lets other goroutines run before a goroutine of a rank blocks. The goroutine that will
// end the wait is often ready to run. The waiting one then need not block and be woken, which costs
// more than the rest of a short message. But a goroutine that yields is queued behind all that are
// ready, and one that is woken is ahead of them. If other goroutines keep the cores busy, yields are
// therefore left out, more of them each time.
type yielder struct {
	left    atomic.Int32 // yields to leave out before the next; below 0, minus the number of yields since
	leftOut atomic.Int32 // how many were left out the last time
}

const (
	slowYield   = 20 * time.Microsecond // on cores that only the ranks use, a yield takes less
	timedYields = 8                     // one yield in 8 is timed: reading the clock takes half as long as a yield
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

// took notes how long a yield took.
func (y *yielder) took(d time.Duration) {
	if d <= slowYield {
		y.leftOut.Store(y.leftOut.Load() / 2)
		return
	}
	out := min(max(2*y.leftOut.Load(), 1<<8), 1<<16)
	y.leftOut.Store(out)
	y.left.Store(out)
}
