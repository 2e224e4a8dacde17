package bell

import (
	"sync/atomic"
	"testing"
	"time"
)

// However Ring meets Arm and Sleep, no ring is lost: a lost one would stop this test for an hour.
func TestNoRingIsLost(t *testing.T) {
	if !Rings {
		t.Skip("here a sleeper looks from time to time")
	}
	const rounds = 20_000
	shared := make([]byte, 2*Size)
	var count [2]atomic.Int32
	bells := [2]Bell{New(shared), New(shared[Size:])}
	play := func(me int) {
		for round := range int32(rounds) {
			count[me].Store(round + 1)
			bells[1-me].Ring()
			for count[1-me].Load() <= round {
				if bells[me].Arm(); count[1-me].Load() <= round {
					bells[me].Sleep(time.Hour)
				}
				bells[me].Disarm()
			}
		}
	}
	other := make(chan struct{})
	go func() { defer close(other); play(1) }()
	play(0)
	<-other
}

// Sleep ends if the bell rang before, if it was never armed, and if the process that rang was killed
// before it could wake the owner.
func TestSleepEnds(t *testing.T) {
	b := New(make([]byte, Size))
	if Rings {
		b.Sleep(time.Hour) // not armed
		b.Arm()
		b.Ring()
		b.Sleep(time.Hour) // rung
		b.Arm()
		over := make(chan struct{})
		go func() { defer close(over); b.Sleep(time.Hour) }()
		atomic.StoreUint32(b.word, 0) // half a Ring
		b.Wake()
		<-over
	}
	b.Arm()
	b.Sleep(time.Nanosecond)
	*b.word = 77 // another process wrote it
	b.Sleep(time.Nanosecond)
}
