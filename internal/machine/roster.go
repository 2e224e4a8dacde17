package machine

import (
	"cmp"
	"slices"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/mpicx/go-mpicx/internal/transport/node"
)

// A roster is the beginning of a job's shared memory.
type roster struct {
	processes []process
	*totals
	places []text // where processes are; they tell that themselves
	ends   []text // how processes have ended; the launcher tells that
}

// A process is a process's cache line on the roster.
type process struct {
	state atomic.Uint32
	death atomic.Uint32 // its place in the order in which deaths were seen, from 1; 0: no process has seen its death
	noted atomic.Uint32 // 1: the launcher has seen its end, and has done what follows from it
	_     [line - 12]byte
}

// The totals are the last line of the roster.
type totals struct {
	deaths   atomic.Uint32 // that any process has seen
	begun    atomic.Uint32 // processes that were started or are to be started; they are the first ones
	survives atomic.Uint32 // 1: the job survives the death of a process; not known before one has joined
	ending   atomic.Uint32 // 1: the launcher passes on a signal that asks the job to end; 2: it has
	asked    atomic.Uint32 // 1: the processes are to tell where they are
}

// A text is told once, by one process.
type text struct {
	length atomic.Uint32 // 0: it has not been told
	bytes  [252]byte
}

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
func rosterSize(n int) int { return textsAt(n) + 2*n*int(unsafe.Sizeof(text{})) }

func textsAt(n int) int { return (n + 1) * line }

func memorySize(n int) int { return rosterSize(n) + node.MemorySize(n) }

// rosterOf returns the roster of n processes in the memory.
func rosterOf(memory []byte, n int) roster {
	memory = memory[:rosterSize(n)]
	texts := unsafe.Slice((*text)(unsafe.Pointer(&memory[textsAt(n)])), 2*n)
	return roster{unsafe.Slice((*process)(unsafe.Pointer(&memory[0])), n), (*totals)(unsafe.Pointer(&memory[n*line])), texts[:n], texts[n:]}
}

// tell tells the text, unless one has been told.
func (t *text) tell(what string) {
	if t.length.Load() == 0 {
		t.length.Store(uint32(copy(t.bytes[:], what)))
	}
}

// told returns what has been told; "": nothing.
func (t *text) told() string {
	return strings.ToValidUTF8(string(t.bytes[:min(int(t.length.Load()), len(t.bytes))]), "")
}

// seen notes that this process has seen the death of another.
func (b roster) seen(rank int) {
	if b.processes[rank].death.CompareAndSwap(0, b.deaths.Load()+1) {
		b.deaths.Add(1)
	}
}

// died says whether a process has seen the death of another.
func (b roster) died(rank int) bool { return b.processes[rank].death.Load() > 0 }

// over says whether all processes that have not died have left.
func (b roster) over() bool {
	for r := range b.begins() {
		if b.state(r) != left && !b.died(r) {
			return false
		}
	}
	return true
}

// begins returns the number of processes that were started or are to be started.
func (b roster) begins() int { return min(int(b.begun.Load()), len(b.processes)) }

// begin makes the launcher start the first n processes, unless they were started.
func (b roster) begin(n int) {
	for was := b.begun.Load(); uint32(n) > was && !b.begun.CompareAndSwap(was, uint32(n)); was = b.begun.Load() {
	}
}

// dead returns the processes whose deaths have been seen, in order.
func (b roster) dead() (all []int) {
	for r := range b.processes {
		if b.died(r) {
			all = append(all, r)
		}
	}
	slices.SortStableFunc(all, func(p, q int) int {
		return cmp.Compare(b.processes[p].death.Load(), b.processes[q].death.Load())
	})
	return all
}

// isFirst says whether no other process died before this one, as far as processes have seen. The
// system may report the end of a process that this death has caused before this one.
func (b roster) isFirst(rank int) bool {
	dead := b.dead()
	return len(dead) == 0 || b.processes[dead[0]].death.Load() == b.processes[rank].death.Load()
}

// any says whether a process is in one of these states.
func (b roster) any(of ...state) bool {
	for r := range b.processes {
		if slices.Contains(of, b.state(r)) {
			return true
		}
	}
	return false
}

func (b roster) state(rank int) state { return state(b.processes[rank].state.Load()) }

func (b roster) set(rank int, s state) { b.processes[rank].state.Store(uint32(s)) }

// claim changes the state of a process from absent to another. It returns false if the process was
// not absent.
func (b roster) claim(rank int, s state) bool {
	return b.processes[rank].state.CompareAndSwap(uint32(absent), uint32(s))
}
