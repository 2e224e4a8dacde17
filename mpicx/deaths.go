package mpicx

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// An Errhandler says what a communicator does when a process dies (MPI_Errhandler).
type Errhandler int

const (
	// ErrorsPropagate makes the first rank whose operation meets a dead process tell all others.
	// All get a *CommCorruptedError.
	ErrorsPropagate Errhandler = iota
	// ErrorsReturn makes an operation that needs a dead process return a *ProcFailedError or
	// ErrProcFailedPending (MPI_ERRORS_RETURN). No other rank is told. The program revokes and
	// repairs the communicator itself.
	ErrorsReturn
)

// SetErrhandler sets what this rank does about processes that die on c, and on communicators
// that are derived from c later (MPI_Comm_set_errhandler). The default is ErrorsPropagate. With
// the black channel it has no effect, because that does not see processes die. It throws an
// *MPIError if h is neither ErrorsPropagate nor ErrorsReturn.
func (c *Comm) SetErrhandler(h Errhandler) {
	c.mustExist("SetErrhandler")
	if h != ErrorsPropagate && h != ErrorsReturn {
		panic(future.Thrown{Err: mpiErrorf("SetErrhandler", ClassOther, "error handler %d, expected ErrorsPropagate (%d) or ErrorsReturn (%d)", h, ErrorsPropagate, ErrorsReturn)})
	}
	c.errhandler.Store(int32(h))
}

// Errhandler returns the error handler of c: the one that SetErrhandler has set here, or the
// one of the communicator that c was made from (MPI_Comm_get_errhandler).
func (c *Comm) Errhandler() Errhandler {
	c.mustExist("Errhandler")
	return Errhandler(c.errhandler.Load())
}

// propagates says whether all ranks are told when an operation of this rank meets a death, or when
// an error ends its program. With the black channel they always are, because a peer can't learn of
// it in another way.
func (c *comm) propagates() bool {
	return c.ulfm == nil || Errhandler(c.errhandler.Load()) == ErrorsPropagate
}

// Failed returns the ranks that this rank knows to be dead, in the order in which it learned of
// them (MPI_Comm_get_failed). A later result begins with the earlier ones. Other ranks may know
// of other deaths: [Comm.AgreeFailed] returns the same set at all.
func (c *Comm) Failed() []int {
	c.mustExist("Failed")
	return c.failed()
}

func (c *comm) failed() []int { return locked(&c.proc.mu, c.ledger.Failed) }

// AckFailed acknowledges the first n of Failed and returns how many are acknowledged
// (MPI_Comm_ack_failed, and before it MPI_Comm_failure_ack). When all are, receives from
// AnySource no longer report ErrProcFailedPending: they wait for the living. If no other rank
// lives, a Wait for such a receive ends with a *ProcFailedError. Collective operations still fail
// after an acknowledgement.
func (c *Comm) AckFailed(n int) int {
	c.mustExist("AckFailed")
	c.disturbing.Lock()
	defer c.disturbing.Unlock()
	c.proc.mu.Lock()
	acked, all := c.ledger.Ack(n)
	c.proc.mu.Unlock()
	if all {
		c.disturb(nil)
	}
	return acked
}

func (c *comm) acknowledged() []int { return locked(&c.proc.mu, c.ledger.Acknowledged) }

// othersAcknowledged says whether the program has acknowledged that all other ranks are dead.
func (c *comm) othersAcknowledged() bool { return len(c.acknowledged()) == c.size-1 }

// died notes that the process of a rank has died.
func (c *comm) died(rank int) {
	if rank == c.rank {
		c.proc.die()
		return
	}
	c.disturbing.Lock()
	first := locked(&c.proc.mu, func() bool { return c.ledger.Died(rank) })
	raise := first && c.disturb(ErrProcFailedPending)
	c.disturbing.Unlock()
	c.proc.feed(func() { // not with disturbing held: an output may call died, and a logger may block
		if raise {
			c.ledger.Lose()
		}
	})
}

// learn notes the deaths that an agreement has found. If the program of this rank has ended, this
// rank may be among them. Its process lives, and joins the rounds that other ranks then open.
func (c *comm) learn(dead []int) {
	for _, r := range dead {
		if r != c.rank {
			c.died(r)
		}
	}
}

// disturb makes Waits for pending receives from AnySource return err, because a possible sender has
// died. If err is nil, it makes them wait again. Under ErrorsPropagate it changes nothing, and
// returns true if there are such receives: all ranks then have to be told. The caller holds
// c.disturbing.
func (c *comm) disturb(err error) (raise bool) {
	c.t.EachPending(func(r *transport.Request) {
		if o, ok := r.Done.(operation); ok && r.Peer == AnySource {
			if c.propagates() {
				raise = true
			} else {
				o.cell().Disturb(err)
			}
		}
	})
	return raise
}

// receiving is called after a receive or probe has begun. It disturbs one from AnySource if a
// death is not acknowledged.
func (c *comm) receiving(peer int) {
	if c.ulfm == nil || peer != AnySource {
		return
	}
	c.disturbing.Lock()
	raise := locked(&c.proc.mu, c.ledger.Unacknowledged) && c.disturb(ErrProcFailedPending)
	c.disturbing.Unlock()
	if raise {
		c.raiseDeath()
	}
}

// raiseDeath gives all ranks a *CommCorruptedError because of a death.
func (c *comm) raiseDeath() { c.proc.feed(c.ledger.Lose) }

// needed returns the error of an operation that needs a dead rank. rank is AnySource if the
// operation needs one of several ranks and all of them are dead.
func (c *comm) needed(op string, rank int) error {
	if rank == AnySource {
		all := c.failed()
		slices.Sort(all)
		return c.met(&ProcFailedError{Ranks: all})
	}
	c.ulfm.Died(rank) // the error channel may not know of the death yet
	c.died(rank)
	err := &ProcFailedError{Ranks: []int{rank}}
	if c.propagates() && c.isClosed() { // nobody can be told (F2)
		return &MPIError{Op: op, Class: ClassComm, Text: fmt.Sprintf("rank %d has died, or returned, and %s is closed", rank, c.name), err: err}
	}
	return c.met(err)
}

// brokenBy returns the failures to report for an error of the transport. c is the rank's first
// communicator, in which ranks are numbered like processes. If the error is that of a process that
// has no rank in c, there are no failures.
func (c *comm) brokenBy(cause error) []Failure {
	f := newFailure(cause, 1)
	f.Rank = c.rank
	if d, ok := errors.AsType[*transport.JobEndedError](cause); ok {
		if d.Process >= c.size {
			return nil
		}
		f.Rank, f.Message = d.Process, hook.ErrUnseen.Error()
	}
	return []Failure{f}
}

// whoReturned divides ranks that are gone into two groups: the programs of the second are known to
// have returned, and the first counts as dead.
func (c *comm) whoReturned(gone []int) (dead, returned []int) {
	for _, r := range gone {
		if c.t.HasReturned(r) {
			returned = append(returned, r)
		} else {
			dead = append(dead, r)
		}
	}
	return dead, returned
}

// reason is Reason of transport.Driver.
func (c *comm) reason(ctx context.Context, rank int) string {
	if c.proc.driver == nil || rank < 0 || rank >= c.size {
		return ""
	}
	return c.proc.driver.Reason(ctx, c.worldRank(rank))
}

// met returns err, the error of an operation of this rank that has met a death. Under
// ErrorsPropagate it has all ranks told of the death; the program then gets the corruption instead
// of err.
func (c *comm) met(err *ProcFailedError) error {
	_, err.returned = c.whoReturned(err.Ranks)
	err.derived = c.parent != nil
	if c.propagates() {
		c.raiseDeath()
	}
	return err
}
