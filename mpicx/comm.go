package mpicx

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/ledger"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// A Comm is a communicator: a group of ranks, numbered from 0, whose messages
// and errors are their own. It must not be copied. Its methods, and the
// functions that take it, are safe for many goroutines of its rank; collective
// operations have to be started in the same order at all ranks.
type Comm struct {
	proc           *proc
	t              transport.Comm
	rank, size     int           // t's
	keeper         future.Keeper // of its futures: (*keeper)(c)
	channel        errchan.Channel
	startListening func()            // on channel
	mitigator      errchan.Mitigator // the same, with the ULFM backend; else nil
	errhandler     atomic.Int32
	id             uint64 // a digest of how it was made: the same at all ranks
	parent         *Comm  // whose errors are this one's, too; nil: none
	name           string
	worldRanks     []int // of the members; nil: the same numbers

	ledger     ledger.Comm // protected by proc.mu
	afterwards []func()    // what waits for the corruption: see afterCorruption; protected by proc.mu

	// disturbing is held while a death becomes known, or is acknowledged, and futures
	// are disturbed for it, so that each has what is true. It is locked before proc.mu.
	disturbing sync.Mutex

	lastSent atomic.Pointer[sentFuture]

	collectives struct { // counts them, for tags and names
		mu    sync.Mutex
		epoch transport.Epoch
		next  int
	}
}

// newComm makes a communicator of t that was made from one, nil for the world, to be
// used once it is open. Parent is the one whose errors are its own, too.
func newComm(p *proc, t transport.Comm, from, parent *Comm, name string, worldRanks []int) *Comm {
	c := &Comm{proc: p, t: t, rank: t.Rank(), size: t.Size(), parent: parent, name: name, worldRanks: worldRanks}
	c.keeper = (*keeper)(c)
	c.ledger.Owner = c
	if from == nil {
		p.world = c
	} else {
		c.errhandler.Store(from.errhandler.Load())
	}
	return c
}

// open opens the error channel of a communicator that was made from one, nil for the
// world, in epoch e. Late says that an error of from has come in between: then c is
// closed, but not where all ranks have agreed on it.
func (c *Comm) open(from *Comm, dup transport.Comm, e transport.Epoch, agreed, byDup bool) (late bool) {
	var of, under *ledger.Comm
	if from != nil {
		of = &from.ledger
	}
	if c.parent != nil {
		under = &c.parent.ledger
	}
	c.openChannel(dup, byDup)
	if !agreed && (!byDup || c.mitigator != nil) { // Dup has no message, but with ULFM an agreement; Shrink is made after one
		c.ledger.Everywhere()
	}
	c.proc.feed(func() { late = !c.proc.ledger.Make(&c.ledger, of, under, e, agreed, c.worldRanks) })
	return late
}

// Rank is this rank's number in the communicator.
func (c *Comm) Rank() int {
	if c == nil {
		panic("mpicx: Rank: " + nilComm)
	}
	return c.rank
}

// Size is the number of ranks of the communicator.
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

// begin is how the operation called op starts: it returns the epoch that the
// operation belongs to, or the error that it ends with at once: one that this rank
// has not been told of yet, or that c is closed.
func (c *Comm) begin(op string) (transport.Epoch, error) {
	epoch := c.t.Epoch() // before the check, see transport.Comm
	if !c.ledger.Troubled() {
		return epoch, nil
	}
	c.proc.exitIfDead()
	err := c.unreported()
	if err == nil && c.isUnwinding() {
		err = errUnwinding // a Wait reports the verdict in place of it
	}
	return epoch, ofOperation(op, err)
}

// isUnwinding says whether what this rank begins on c must reach nobody.
func (c *Comm) isUnwinding() bool {
	c.proc.mu.Lock()
	defer c.proc.mu.Unlock()
	return c.ledger.Unwinding()
}

// sequence numbers a collective operation of an epoch.
func (c *Comm) sequence(e transport.Epoch) int {
	s := &c.collectives
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.epoch != e {
		s.epoch, s.next = e, 0
	}
	s.next++
	return s.next
}

// Dup makes a communicator of the same ranks, with messages and errors of its
// own (MPI_Comm_dup). It is collective. An error of c interrupts Waits on it too.
func (c *Comm) Dup() *future.Future[*Comm] {
	if c == nil {
		return nowhere[*Comm]("Dup")
	}
	c.notInReduction("begins", "Dup")
	epoch, err := c.begin("Dup")
	if err != nil {
		return failed[*Comm](c, err)
	}
	seq := c.sequence(epoch)
	f, p := future.New[*Comm]()
	p.Keep(makingKeeper{(*keeper)(c), "Dup"})
	made := c.agreed(errchan.Dup, epoch, p)
	c.derive(transport.Name{Epoch: epoch, Seq: uint64(seq)}, nil, c.worldRanks, fmt.Sprintf("%s.dup%d", c.name, seq), made)
	return f
}

// ender is a function as a collective.Ender.
type ender func(error)

func (f ender) Ended(err error) { f(err) }

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

// derive makes a communicator and its error channel, and has errors of c
// interrupt it.
func (c *Comm) derive(name transport.Name, members, worldRanks []int, called string, made func(*Comm, error)) {
	c.deriveUnder(c, name, false, members, worldRanks, called, made)
}

// deriveUnder is derive, but errors of parent interrupt it instead. Agreed says that
// all ranks make it, whatever comes in between.
func (c *Comm) deriveUnder(parent *Comm, name transport.Name, agreed bool, members, worldRanks []int, called string, made func(*Comm, error)) {
	name.Generation = parent.ledger.Generation() + 1
	c.t.Sub(name, members, func(t transport.Comm, err error) {
		if err != nil {
			made(nil, err)
			return
		}
		t.Sub(transport.ErrorChannelName(), nil, func(dup transport.Comm, err error) {
			if err != nil {
				made(nil, err)
				return
			}
			d := newComm(c.proc, t, c, parent, called, worldRanks)
			d.id = errchan.Identify(c.id, name)
			if late := d.open(c, dup, name.Epoch, agreed, members == nil); !late {
				made(d, nil)
			} else if err := c.unreported(); err != nil {
				made(nil, err)
			} else {
				made(nil, mpiErrorf("Dup", ClassComm, "an error of %s came in between", c.name))
			}
		})
	})
}

// Close ends the use of the communicator. It is collective: it waits for all
// ranks, so that an error of a peer that has not come so far still arrives here.
// Then the communicator stays open. On a communicator that is corrupted, revoked
// or has dead ranks, Close waits for nobody and returns nil.
func (c *Comm) Close(ctx context.Context) error {
	if err := c.ready("Close", ctx); err != nil {
		return err
	}
	if c.isClosed() {
		return mpiErrorf("Close", ClassComm, "%s is closed already", c.name)
	}
	var err error
	if !c.isBroken() {
		// What this rank has raised is told first. A peer that met it here would have closed
		// c before it came.
		if err = c.verdictFor(ctx, ledger.TakeToClose); err == nil {
			err = c.meetToClose().Wait(ctx)
		}
		if err != nil && !isDeath(err) && !c.isBroken() || is[*PropagatedError](err) {
			return err
		}
		if err != nil && c.parent != nil { // it may have joined a round of the parent's meanwhile (P2)
			if v := c.parent.verdict(ctx); v != nil {
				return v
			}
		}
	}
	if quiet := c.close(); quiet && err == nil && c.mitigator == nil {
		c.release()
	}
	return nil
}

func (c *Comm) isClosed() bool {
	c.proc.mu.Lock()
	defer c.proc.mu.Unlock()
	return c.ledger.IsClosed()
}

// meetToClose is a Barrier that does not tell the program of a corruption of c: Close
// keeps it to itself.
func (c *Comm) meetToClose() *future.Future[struct{}] {
	r, p := c.newRun(), c.proc.untyped.get()
	p.Keep(closingKeeper{makingKeeper{(*keeper)(c), "Close"}})
	r.promise, r.exchange.Name = p, "Close"
	if epoch, err := c.begin("Close"); err != nil {
		r.Ended(err)
	} else {
		r.exchange.Start(c.t, epoch, transport.CollectiveTag(c.sequence(epoch)), c.barrier(), r)
	}
	return p.Future()
}

type closingKeeper struct{ makingKeeper }

func (k closingKeeper) Verdict(ctx context.Context) error {
	return (*Comm)(k.keeper).verdictFor(ctx, ledger.TakeToClose)
}

// close ends the use of c at this rank, and says whether it knows of no error that is
// on its way.
func (c *Comm) close() (quiet bool) {
	c.proc.feed(func() { quiet = c.ledger.Close() })
	return quiet
}

// release gives back what the transport holds, once all ranks have closed c with no
// error on its way: then none can come of it any more. That is so when all have begun a
// second barrier, which nobody waits for. (With the ULFM backend it would need ranks whose programs have
// ended, and what is needed of those is that they die: there all is kept.)
func (c *Comm) release() {
	epoch := c.t.Epoch()
	x := &collective.Exchange{Name: "Close"}
	x.Start(c.t, epoch, transport.CollectiveTag(c.sequence(epoch)), c.barrier(), ender(func(err error) {
		if err == nil && len(c.derived()) == 0 {
			_, _ = c.channel.Close(), c.t.Close()
		}
	}))
}

// freeList keeps a few values of T that have served, for those to come.
type freeList[T any] struct {
	last atomic.Pointer[T] // mostly there is one: it takes no lock
	mu   sync.Mutex
	free []*T
}

const freeListMax = 32

func (l *freeList[T]) get() *T {
	if v := l.last.Swap(nil); v != nil {
		return v
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.free); n > 0 {
		v := l.free[n-1]
		l.free = l.free[:n-1]
		return v
	}
	return new(T)
}

func (l *freeList[T]) put(v *T) {
	if l.last.CompareAndSwap(nil, v) {
		return
	}
	l.mu.Lock()
	if len(l.free) < freeListMax {
		l.free = append(l.free, v)
	}
	l.mu.Unlock()
}

// slab hands out values of T from chunks, so that most operations cost no
// allocation. A chunk is freed once all its values are.
type slab[T any] struct {
	chunk atomic.Pointer[chunk[T]]
}

type chunk[T any] struct {
	used   atomic.Int32
	values []T
}

// slabChunk is large enough to make allocations rare, and small enough for a
// hundred thousand ranks to have one each.
const slabChunk = 16

func (s *slab[T]) get() *T {
	for {
		c := s.chunk.Load()
		size := 1
		if c != nil {
			if i := int(c.used.Add(1)) - 1; i < len(c.values) {
				return &c.values[i]
			}
			size = min(2*len(c.values), slabChunk)
		}
		s.chunk.CompareAndSwap(c, &chunk[T]{values: make([]T, size)})
	}
}
