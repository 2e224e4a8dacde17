package mpicx

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/internal/diagnosis"
	"github.com/mpicx/go-mpicx/internal/element"
	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/internal/ledger"
	"github.com/mpicx/go-mpicx/internal/observe"
	"github.com/mpicx/go-mpicx/internal/replace"
	"github.com/mpicx/go-mpicx/internal/stop"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// A Comm is a communicator (MPI_Comm): a group of ranks, numbered from 0, whose messages and
// errors are their own. It must not be copied. Its methods, and the functions that take it, may
// be called from many goroutines of its rank. All ranks start collective operations in the same
// order.
type Comm struct {
	*comm
}

// of returns what c stands for; of nil, nil.
func (c *Comm) of() *comm {
	if c == nil {
		return nil
	}
	return c.comm
}

// comm is what a Comm stands for. It outlives the Comm, which is only the program's handle:
// messages and errors come for it until all ranks have given up theirs.
type comm struct {
	// The lock order is: disturbing, then the locks of transports and error channels, then
	// proc.mu. A transport may be called under disturbing, and may ask for acknowledged deaths
	// under its own locks. Nothing that locks is called under proc.mu.

	// These fields do not change once the communicator is open.

	proc       *proc
	t          transport.Comm
	rank, size int            // t's
	keeper     waiting.Keeper // of its futures: a *keeper
	chooser    collective.Chooser
	id         uint64 // a digest of how it was made, the same at all ranks
	name       string
	// parent is the communicator whose errors are this one's too. It is nil for the world.
	parent *comm
	// channel is the error channel, which hears nothing before startListening is called.
	// With the ULFM backend ulfm is the same channel; with the black channel it is nil.
	channel        errchan.Channel
	ulfm           errchan.ULFM
	startListening func()
	// side is the messenger of the channel. It also carries the questions of Diagnose.
	side *diagnosis.Side

	// number is the Number of the Membership of c, or of the communicator that c was made from
	// by Shrink. It is 0 if there is none, and c can't be replaced then. replaced are the ranks
	// that are new.
	number   int
	replaced []int
	// lineage is set only in the rank's first communicator, which has no parent.
	lineage *lineage

	// errhandler is an Errhandler. Its first value is that of the communicator that c was
	// made from.
	errhandler atomic.Int32

	// ledger is the communicator's part of proc.ledger. proc.mu protects it, except for
	// methods that need no lock.
	ledger ledger.Comm
	// released says that all ranks have closed the communicator.
	released atomic.Bool

	// calls counts the pending calls of this rank on c that begins has begun.
	calls atomic.Int32

	// voting counts the agreements of an epoch, with the black channel. proc.mu protects it.
	voting struct {
		epoch transport.Epoch
		made  uint64
	}

	// afterwards begin the operations of a rank that has unwound, when the corruption that it
	// raised is resolved. It is empty on a broken communicator. proc.mu protects it.
	afterwards []func()

	// disturbing is held while a death becomes known or is acknowledged, until each pending
	// receive from AnySource is disturbed or continues accordingly. No receive is therefore
	// disturbed by a death that is acknowledged. No output of the ledger is carried out under
	// it.
	disturbing sync.Mutex

	// last are futures that are done, of a receive and of a send. Operations that end at once, as
	// the one before did, share them.
	last [2]atomic.Pointer[endedFuture]
	// succeeded is done. It serves each collective operation that ends as it begins, with no error.
	succeeded future.Promise[struct{}]

	// stops counts the calls of Stopping in this epoch. Its sign bit is set once a stop was asked
	// for; stopping is set then, and does not change any more.
	stops    atomic.Int64
	stopping atomic.Pointer[stopping]

	// toldMismatch is the last mismatch of collective calls that an operation has reported.
	toldMismatch atomic.Pointer[transport.MismatchError]

	exposed // package hook uses its method
}

type exposed = hook.Hidden // the field's name, which is not exported

// inside is a Comm as package hook gives it to other packages of this module.
type inside comm

// A lineage is one rank's record of the world and of the communicators that Replace has made of
// it, one after another.
type lineage struct {
	// pool is the communicator of all ranks of a job with spares or fresh ranks: the parent of
	// the world and of the communicators that Replace makes. The program does not see it. It is
	// nil if there are neither spares nor fresh ranks.
	pool    *comm
	workers []int // the ranks of the pool that begin in the world
	// start starts a rank of the pool, unless it has been started before. It is set if the job
	// has fresh ranks, and not spares.
	start func(rank int)
	// rescuers carries the messages of rescue. It is nil if pool is.
	rescuers transport.Messenger
	replaces replace.Order // of the calls of Replace

	mu       sync.Mutex // protects the following fields
	rescue   *replace.Machine
	decided  func(*replace.Fate) // ends the wait of a rank that waits for its fate
	newest   *comm               // the world, or the last communicator that Replace made; nil: none yet
	registry *registry           // nil: the rank has not called CreateIntercomm
}

// upTo returns 0 to n-1.
func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

func ownerOf(a *ledger.Comm) *comm { return a.Owner.(*comm) }

// Rank is this rank's number in the communicator (MPI_Comm_rank).
func (c *Comm) Rank() int {
	c.mustExist("Rank")
	return c.rank
}

// Transport says what the communicator runs on: "local", goroutines of this process; "node",
// processes of this machine, which mpicxrun has started; "mpi", processes of an MPI job.
func (c *Comm) Transport() string {
	c.mustExist("Transport")
	return c.t.Features().Name
}

// Size is the number of ranks of the communicator (MPI_Comm_size).
func (c *Comm) Size() int {
	c.mustExist("Size")
	return c.size
}

// mustExist panics if c is nil, where no error can be returned.
func (c *Comm) mustExist(call string) {
	if c == nil {
		panic("mpicx: " + call + ": " + nilComm)
	}
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
func (c *comm) root() *comm {
	for c.parent != nil {
		c = c.parent
	}
	return c
}

// family returns c and all communicators derived from it.
func (c *comm) family() []*comm { return ownersOf(locked(&c.proc.mu, c.ledger.Family)) }

// derived returns the communicators whose parent is c.
func (c *comm) derived() []*comm { return ownersOf(locked(&c.proc.mu, c.ledger.Children)) }

func ownersOf(all []*ledger.Comm) (owners []*comm) {
	for _, d := range all {
		owners = append(owners, ownerOf(d))
	}
	return owners
}

func (c *comm) worldRank(rank int) int {
	if ranks := c.ledger.Ranks(); ranks != nil {
		return ranks[rank]
	}
	return rank
}

// waits is called by a goroutine that is about to wait on c, but not for a future. The goroutine
// calls over when it stops waiting.
func (c *comm) waits(call string) (over func()) {
	return c.proc.observer.Waits(func() string { return observe.Operation{Name: call, Comm: c.name}.String() })
}

// notInReduction throws if it is called by a reduction's function. Such a function must not
// wait, nor begin a collective operation, because its peers may not begin it.
func (c *comm) notInReduction(does, what string) {
	if element.InFunction() {
		panic(future.Thrown{Err: fmt.Errorf("its function %s %s on %s, expected one that neither waits nor begins a collective operation", does, what, c.name)})
	}
}

// worldRanksOf returns the members' ranks in the world, for reading only.
func (c *comm) worldRanksOf(members []int) []int {
	if c.ledger.Ranks() == nil {
		return members
	}
	ranks := make([]int, len(members))
	for i, r := range members {
		ranks[i] = c.worldRank(r)
	}
	return ranks
}

func (c *comm) isSelf(rank int) bool { return c.rank == rank }

func (c *comm) isClosed() bool { return locked(&c.proc.mu, c.ledger.IsClosed) }
func (c *comm) isBroken() bool { return locked(&c.proc.mu, c.ledger.Broken) }

// hasRaised says whether operations that this rank begins on c must not reach other ranks.
func (c *comm) hasRaised() bool { return locked(&c.proc.mu, c.ledger.HasRaised) }

func (c *comm) isUnwinding() bool { return locked(&c.proc.mu, c.ledger.Unwinding) }

// knows returns false if c is corrupted and the program was not told. An operation that the
// program then begins belongs before the corruption. It must not match the operations of ranks
// that repair c.
func (c *comm) knows() bool { return locked(&c.proc.mu, c.ledger.Knows) }

// An operation is an operation of the program, behind a request or a collective.
type operation interface{ cell() *waiting.Cell }

// stopping is what a communicator knows of a stop. It is made for the first request.
//
// The ranks decide in which call of Stopping they stop. As soon as a rank hears of the request,
// even while it computes, it contributes the number of calls that have returned nil there. From
// then on further calls wait for the decision. The ranks stop in the first call that none of them
// has made. In that call all agree to return the error. So an error or a death comes before it at
// all ranks, or at none. An error ends both, and they begin again in its epoch.
type stopping struct {
	request stop.Request

	mu       sync.Mutex // protects the fields below
	asked    bool       // the request, or another one, is on its way to all ranks of the communicator
	epoch    transport.Epoch
	decision *future.Future[stop.Tally] // of the epoch; nil: not begun
	meeting  *future.Future[struct{}]   // of the epoch; nil: not begun
}

// stopAsked is the sign bit of Comm.stops.
const stopAsked = math.MinInt64

// hearStop notes a request on c and all communicators derived from it, and returns them.
func (c *comm) hearStop(q *stop.Request) (family []*comm) {
	hear := func(d *comm) {
		d.stopping.CompareAndSwap(nil, &stopping{request: *q})
		d.stops.Or(stopAsked) // also if another goroutine is about to: from here on calls wait
	}
	hear(c) // first: a communicator that is made later inherits the request
	family = c.family()
	for _, d := range family {
		hear(d)
	}
	return family
}

// inheritStop notes a request on from, of which c is made, or on an ancestor of it.
func (c *comm) inheritStop(from *comm) {
	for ; from != nil; from = from.parent {
		if s := from.stopping.Load(); s != nil {
			c.hearStop(&s.request)
		}
	}
}

// stopCalls is the number of calls of Stopping in this epoch.
func (c *comm) stopCalls() int64 { return c.stops.Load() &^ stopAsked }

// isStop says whether err is a StopError that all ranks of c get: the request holds for c.
func (c *comm) isStop(err error) bool { return c.stops.Load() < 0 && stopIn(err) != nil }
