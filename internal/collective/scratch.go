package collective

import (
	"math/bits"
	"sync"
	"unsafe"
)

// scratch holds buffers for reuse, by the logarithm of their size. Allocating a large buffer takes
// longer than the messages that it is for.
var scratch [largestScratch + 1]sync.Pool

const (
	smallestScratch = 7
	largestScratch  = 28 // larger buffers are not kept
)

// Scratch returns n bytes, with any contents, which the algorithm may use until the operation has
// ended, as memory of any type without pointers.
func (x *Exchange) Scratch(n int) []byte {
	if x.Void != nil {
		return x.Void[:n]
	}
	few := unsafe.Slice((*byte)(unsafe.Pointer(&x.few)), len(x.few)*8)
	if n <= len(few)-x.used {
		b := few[x.used:][:n:n]
		x.used += (n + 7) &^ 7
		return b
	}
	if n > 1<<largestScratch {
		return make([]byte, n)
	}
	b := borrow(n)
	x.borrowed = append(x.borrowed, b)
	return b[:n:n]
}

// borrow returns n bytes or more, at most 1<<largestScratch, which may be given back.
func borrow(n int) []byte {
	class := max(smallestScratch, bits.Len(uint(max(n, 1)-1)))
	p, ok := scratch[class].Get().(*byte)
	if !ok {
		p = unsafe.SliceData(make([]byte, 1<<class))
	}
	return unsafe.Slice(p, 1<<class)
}

func giveBack(b []byte) { scratch[bits.Len(uint(len(b)-1))].Put(unsafe.SliceData(b)) }

// end returns the buffers to scratch. No message of the operation is pending.
func (x *Exchange) end(err error) (ended bool, _ error) {
	for i, b := range x.borrowed {
		giveBack(b)
		x.borrowed[i] = nil
	}
	x.borrowed, x.used = x.borrowed[:0], 0
	x.algorithm = nil
	for i := range x.requests[:cap(x.requests)] {
		x.requests[:cap(x.requests)][i].Buf = nil
		x.requests[:cap(x.requests)][i].Meeting = nil
	}
	if left := x.without.Load(); left != nil && err == nil {
		return true, left
	}
	return true, err
}
