package machine

import (
	"cmp"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/mpicx/go-mpicx/internal/transport/node"
)

// A roster is the beginning of a job's shared memory. Its words are read and written atomically. It
// has a cache line for each process. The first word of the line is the process's state. The second
// is 0 while no process has seen its death, and then its place, from 1, in the order in which
// deaths were seen. A last line has the number of deaths that have been seen, the number of
// processes that were started or are to be started, and whether the job survives deaths.
type roster []byte

// A state is the state of a process on the roster.
type state uint32

const (
	absent  state = iota // it has not joined the job
	fragile              // it takes part, in a job that does not survive its death
	mortal               // it takes part, in a job that survives its death
	left                 // it needs no others, and passes messages on until all others have left
	never                // it has never joined, and never will: it has ended, or can't be started
)

const line = 64 // bytes of a cache line

// rosterSize returns the size of the roster; the rest of the memory is package node's.
func rosterSize(n int) int { return (n + 1) * line }

func memorySize(n int) int { return rosterSize(n) + node.MemorySize(n) }

func (b roster) word(rank int) *uint32 { return (*uint32)(unsafe.Pointer(&b[rank*line])) }

// seen notes that this process has seen the death of another.
func (b roster) seen(rank int) {
	if atomic.CompareAndSwapUint32(b.when(rank), 0, b.deaths()+1) {
		atomic.AddUint32(b.count(), 1)
	}
}

// died says whether a process has seen the death of another.
func (b roster) died(rank int) bool { return atomic.LoadUint32(b.when(rank)) > 0 }

// over says whether all processes that have not died have left.
func (b roster) over() bool {
	for r := range b.begun() {
		if b.state(r) != left && !b.died(r) {
			return false
		}
	}
	return true
}

// deaths returns the number of deaths that any process has seen.
func (b roster) deaths() uint32 { return atomic.LoadUint32(b.count()) }

func (b roster) count() *uint32 { return (*uint32)(unsafe.Pointer(&b[len(b)-line])) }

// survives says whether the job survives the death of a process. It is not known before a process
// has joined.
func (b roster) survives() bool { return atomic.LoadUint32(b.mortality()) > 0 }

func (b roster) mortality() *uint32 { return (*uint32)(unsafe.Pointer(&b[len(b)-line+8])) }

// begun returns the number of processes that were started or are to be started. They are the first
// ones.
func (b roster) begun() int { return min(int(atomic.LoadUint32(b.beginnings())), len(b)/line-1) }

// begin makes the launcher start the first n processes, unless they were started.
func (b roster) begin(n int) {
	for {
		was := atomic.LoadUint32(b.beginnings())
		if uint32(n) <= was || atomic.CompareAndSwapUint32(b.beginnings(), was, uint32(n)) {
			return
		}
	}
}

func (b roster) beginnings() *uint32 { return (*uint32)(unsafe.Pointer(&b[len(b)-line+4])) }

// dead returns the processes whose deaths have been seen, in order.
func (b roster) dead() (all []int) {
	for r := range len(b)/line - 1 {
		if b.died(r) {
			all = append(all, r)
		}
	}
	slices.SortStableFunc(all, func(p, q int) int {
		return cmp.Compare(atomic.LoadUint32(b.when(p)), atomic.LoadUint32(b.when(q)))
	})
	return all
}

// when returns the word with a process's place in the order of deaths; 0: its death was not seen.
func (b roster) when(rank int) *uint32 { return (*uint32)(unsafe.Pointer(&b[rank*line+4])) }

// before says whether the death of a process was seen before that of another.
func (b roster) before(one, other int) bool {
	first, second := atomic.LoadUint32(b.when(one)), atomic.LoadUint32(b.when(other))
	return first > 0 && (second == 0 || first < second)
}

func (b roster) state(rank int) state { return state(atomic.LoadUint32(b.word(rank))) }

func (b roster) set(rank int, s state) { atomic.StoreUint32(b.word(rank), uint32(s)) }

// claim changes the state of a process from absent to another. It returns false if the process was
// not absent.
func (b roster) claim(rank int, s state) bool {
	return atomic.CompareAndSwapUint32(b.word(rank), uint32(absent), uint32(s))
}
