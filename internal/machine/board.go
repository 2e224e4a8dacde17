package machine

import (
	"sync/atomic"
	"unsafe"

	"github.com/mpicx/go-mpicx/internal/transport/node"
)

// A board is the beginning of the memory that a job shares: a line for each process, whose
// first word says what has become of it.
type board []byte

// What has become of a process.
type state uint32

const (
	absent  state = iota // it has not come
	fragile              // it takes part, in a job that does not survive its death
	mortal               // it takes part, in a job that does
	left                 // it has ended its part, as all others have or will
	never                // it has ended, or can't come any more, and had not come
)

const line = 64

// boardSize is how much of the memory is the board; the rest is package node's.
func boardSize(n int) int { return n * line }

func memorySize(n int) int { return boardSize(n) + node.MemorySize(n) }

func (b board) word(rank int) *uint32 { return (*uint32)(unsafe.Pointer(&b[rank*line])) }

func (b board) state(rank int) state { return state(atomic.LoadUint32(b.word(rank))) }

func (b board) set(rank int, s state) { atomic.StoreUint32(b.word(rank), uint32(s)) }

// claim sets the state of a process that has not come, and says whether it had not.
func (b board) claim(rank int, s state) bool {
	return atomic.CompareAndSwapUint32(b.word(rank), uint32(absent), uint32(s))
}
