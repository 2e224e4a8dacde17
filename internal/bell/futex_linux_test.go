package bell

import (
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// A change of a word that is watched ends the sleep, before and during it.
func TestWatch(t *testing.T) {
	if _, _, err := syscall.Syscall6(futexWaitv, 0, 0, 0, 0, 0, 0); err != syscall.EINVAL {
		t.Skipf("Linux has futex_waitv from 5.16 on, and containers may forbid it: %v", err)
	}
	b := New(make([]byte, Size))
	words := [2]uint32{1, 2}
	b.Watch([]*uint32{&words[0], &words[1]})
	for i := range words {
		b.Arm()
		words[i]++
		b.Sleep(time.Hour)
		b.Arm()
		over := make(chan struct{})
		go func() { defer close(over); b.Sleep(time.Hour) }()
		atomic.AddUint32(&words[i], 1)
		for stop := false; !stop; {
			wake(&words[i]) // as the system does
			select {
			case <-over:
				stop = true
			default:
			}
		}
	}
}
