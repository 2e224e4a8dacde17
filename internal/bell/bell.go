package bell

import (
	"sync/atomic"
	"time"
	"unsafe"
)

// Size is the memory of a Bell: a cache line, all zero at first.
const Size = 64

// A Bell is a process's own, or another one's to ring.
type Bell struct {
	word *uint32
	also []*uint32 // see Watch
	was  []uint32  // their values at Arm
}

// armed is the value of the word while a ring wakes the owner.
const armed = 1

// New returns the Bell in this memory, whose address is a multiple of 4.
func New(shared []byte) Bell { return Bell{word: (*uint32)(unsafe.Pointer(&shared[0]))} }

// Watch makes Sleep end, where the system can, when one of these words has changed since Arm. A
// process that changes one has to wake those that wait for it, as the system does when the owner of
// a robust futex dies.
func (b *Bell) Watch(words []*uint32) { b.also, b.was = words, make([]uint32, len(words)) }

// Arm makes the next Ring end the next Sleep.
func (b *Bell) Arm() {
	for i, word := range b.also {
		b.was[i] = atomic.LoadUint32(word)
	}
	atomic.StoreUint32(b.word, armed)
}

// Armed says whether a Ring would wake the owner.
func (b *Bell) Armed() bool { return atomic.LoadUint32(b.word) == armed }

// Disarm undoes Arm.
func (b *Bell) Disarm() { atomic.StoreUint32(b.word, 0) }

// Sleep returns once the Bell has been rung since Arm, or after this time, or sooner. It says
// whether the Bell has been rung.
func (b *Bell) Sleep(most time.Duration) (rung bool) {
	b.sleep(most)
	return atomic.SwapUint32(b.word, 0) != armed
}

// Ring wakes the owner if it has armed the Bell. Otherwise it costs one load.
func (b *Bell) Ring() {
	if b.Armed() && atomic.CompareAndSwapUint32(b.word, armed, 0) {
		b.Wake()
	}
}

// Wake wakes the owner even if the Bell is not armed: a process that dies while it rings may have
// disarmed it, and not woken the owner.
func (b *Bell) Wake() {
	atomic.StoreUint32(b.word, 0)
	wake(b.word)
}
