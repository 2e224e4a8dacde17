package mpicx

import (
	"sync"
	"sync/atomic"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/internal/diagnosis"
	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/ledger"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// A Comm is a communicator (MPI_Comm): a group of ranks, numbered from 0, whose messages and
// errors are their own. It must not be copied. Its methods, and the functions that take it, may
// be called from many goroutines of its rank. All ranks start collective operations in the same
// order.
type Comm struct {
	// The lock order is: disturbing, then the locks of transports and error channels, then
	// proc.mu. A transport may be called under disturbing, and may ask for acknowledged deaths
	// under its own locks. Nothing that locks is called under proc.mu.

	// These do not change once the communicator is open.

	proc       *proc
	t          transport.Comm
	rank, size int            // t's
	keeper     waiting.Keeper // of its futures: (*keeper)(c)
	chooser    collective.Chooser
	id         uint64 // a digest of how it was made, the same at all ranks
	name       string
	worldRanks []int // of the members; nil: the same numbers
	// parent is the communicator whose errors are this one's, too. It is nil for the world.
	parent *Comm
	// channel is the error channel, which hears nothing before startListening is called.
	// With the ULFM backend ulfm is the same channel; with the black channel it is nil.
	channel        errchan.Channel
	ulfm           errchan.ULFM
	startListening func()
	// side is the messenger of the channel, which carries questions of Diagnose besides.
	side *diagnosis.Side

	// Line says which of the rank's lineage c is, or which of them depth Shrinks have made it
	// from; 0: none, so it can't be replaced. Replaced are the ranks that are new.
	line, depth int
	replaced    []int
	// lineage is that of the rank's first communicator, which has no parent.
	lineage *lineage

	// errhandler is an Errhandler. A communicator begins with that of the one it is made from.
	errhandler atomic.Int32

	// ledger is the communicator's account in proc.ledger. Proc.mu protects it, but for
	// the methods that need no lock.
	ledger ledger.Comm
	// releasing is for the black channel: see releaseWhenForgotten.
	releasing atomic.Bool
	// released is for the ULFM backend: all have closed the communicator.
	released atomic.Bool

	// afterwards are operations of a rank that has unwound: they begin once the corruption
	// that it raised is resolved. It is empty on a broken communicator. Proc.mu protects it.
	afterwards []func()

	// disturbing is held while a death becomes known or is acknowledged, until each pending
	// receive from AnySource is disturbed or goes on accordingly. So no receive is disturbed
	// for a death that is acknowledged. Nothing that the ledger asks for is carried out under it.
	disturbing sync.Mutex

	// lastSent is done. It serves each send that ends as the one before did.
	lastSent atomic.Pointer[sentFuture]
	// succeeded is done. It serves each collective operation that ends as it begins, with no error.
	succeeded future.Promise[struct{}]

	// toldMismatch is the error of a mismatch of collective calls that an operation has ended
	// with.
	toldMismatch atomic.Pointer[transport.MismatchError]
}

// A lineage is the world, and what Replace made of it, one after another, as one rank has them.
type lineage struct {
	// pool is the parent of them all where the job has spares: the communicator of all its
	// ranks, which the program does not see. The workers are those who begin in the world.
	pool     *Comm // nil: no spares
	workers  []int
	replaces turns // calls of Replace

	mu       sync.Mutex
	is       succession
	newest   *Comm
	registry *registry // nil: the rank has made no Intercomm
}

// ownerOf returns the communicator of an account.
func ownerOf(a *ledger.Comm) *Comm { return a.Owner.(*Comm) }

// Rank is this rank's number in the communicator (MPI_Comm_rank).
func (c *Comm) Rank() int {
	if c == nil {
		panic("mpicx: Rank: " + nilComm)
	}
	return c.rank
}

// Transport says what the communicator runs on: "local", goroutines of this process; "node",
// processes of this machine, which mpicxrun has started; "mpi", processes of an MPI job.
func (c *Comm) Transport() string {
	if c == nil {
		panic("mpicx: Transport: " + nilComm)
	}
	return c.t.Features().Name
}

// Size is the number of ranks of the communicator (MPI_Comm_size).
func (c *Comm) Size() int {
	if c == nil {
		panic("mpicx: Size: " + nilComm)
	}
	return c.size
}

// String returns the communicator's name: "world", and for derived ones how they
// were made.
func (c *Comm) String() string {
	if c == nil {
		return nilComm
	}
	return c.name
}

// root returns the first communicator of c's rank.
func (c *Comm) root() *Comm {
	for c.parent != nil {
		c = c.parent
	}
	return c
}

// family returns c and what is derived from it.
func (c *Comm) family() (all []*Comm) {
	c.proc.mu.Lock()
	defer c.proc.mu.Unlock()
	for _, d := range c.ledger.Family() {
		all = append(all, ownerOf(d))
	}
	return all
}

// derived returns what was made from c, or will be told of its errors.
func (c *Comm) derived() (all []*Comm) {
	c.proc.mu.Lock()
	defer c.proc.mu.Unlock()
	for _, d := range c.ledger.Children() {
		all = append(all, ownerOf(d))
	}
	return all
}

func (c *Comm) worldRank(rank int) int {
	if c.worldRanks == nil {
		return rank
	}
	return c.worldRanks[rank]
}

// notInReduction throws if a reduction's function does what could block it: it
// waits, or it begins a collective operation, as its peers may not. It looks at the
// stack only while such a function runs.
func (c *Comm) notInReduction(does, what string) {
	if calls.Load() > 0 && inReduction() {
		panic(future.Thrown{Err: &reentryError{does, what, c.name}})
	}
}

// worldRanksOf returns the members' ranks in the world, for reading only.
func (c *Comm) worldRanksOf(members []int) []int {
	if c.worldRanks == nil {
		return members
	}
	ranks := make([]int, len(members))
	for i, r := range members {
		ranks[i] = c.worldRank(r)
	}
	return ranks
}

func (c *Comm) isClosed() bool {
	c.proc.mu.Lock()
	defer c.proc.mu.Unlock()
	return c.ledger.IsClosed()
}

func (c *Comm) isBroken() bool {
	c.proc.mu.Lock()
	defer c.proc.mu.Unlock()
	return c.ledger.Broken()
}

// isUnwinding says whether what this rank begins on c must reach nobody.
func (c *Comm) isUnwinding() bool {
	c.proc.mu.Lock()
	defer c.proc.mu.Unlock()
	return c.ledger.Unwinding()
}

// knows says whether the program knows that c is corrupted, if it is. If not, its
// operation belongs before the corruption, and must not meet those of ranks that
// repair c.
func (c *Comm) knows() bool {
	c.proc.mu.Lock()
	defer c.proc.mu.Unlock()
	return c.ledger.Knows()
}

// An operation is what a request or collective is for, while the program may wait for it.
type operation interface{ cell() *waiting.Cell }
