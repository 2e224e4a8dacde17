package collective

import (
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/stop"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// An Algorithm is one rank's part in a collective operation, step by step.
type Algorithm interface {
	// Step carries out step k. It is called with k = 0, 1, … as soon as all messages of step k-1
	// have been exchanged. It computes with what it has received, and asks x to exchange the
	// messages of step k, in any order. It returns false in the last step. A panic in it ends the
	// operation with a *future.Panicked.
	Step(k int, x *Exchange) (more bool)
}

// An Ender is told that an operation has ended, with nil or the first error of a
// message. Ended must not block.
type Ender interface{ Ended(error) }

// An Exchange carries out an Algorithm. It must not be copied. It may carry out another
// operation after one has ended.
type Exchange struct {
	// Void, if not nil, is what Scratch returns. It is for simulations whose messages have no
	// contents: all ranks may share it.
	Void []byte

	Name      string         // of the operation, for people
	Signature signature.Word // of the call, which its messages carry
	// Soon says that the program is about to wait for the operation, and that such operations have
	// ended soon so far.
	Soon bool
	more bool
	// ended counts the requests that have ended, and started once run has begun all and left.
	// Whoever completes it continues. It is not used in a step whose requests all end at once.
	ended atomic.Int32

	comm       transport.Comm
	rank, size int               // of comm or, in a step, among members
	members    []int             // ranks of comm among which a step is; nil: all
	starter    transport.Starter // comm, or nil if it is none

	epoch     transport.Epoch
	tag       int
	algorithm Algorithm
	done      Ender

	step     int // changes only while no request is pending
	requests []transport.Request
	err      atomic.Pointer[error]
	without  atomic.Pointer[transport.LeftError] // of a rank that Close does without

	to, from []byte    // of Copy
	few      [8]uint64 // the first Scratch, of which the first used bytes are taken
	used     int
	borrowed [][]byte
}

// A LengthError says that a message of a collective operation has another length than
// this rank expected. The ranks called the operation with different counts or types, or
// called different operations.
type LengthError struct {
	Source    int
	Got, Want int // bytes
}

func (e *LengthError) Error() string {
	return fmt.Sprintf("%d bytes from rank %d where %d were expected: the ranks' counts or types differ, or they are in different operations", e.Got, e.Source, e.Want)
}

// Start begins the operation. Done is told its end, possibly before Start returns. The tag is
// negative, the same at all ranks, and used by no other operation of the epoch. Comm is of a type
// that can be compared, such as a pointer.
func (x *Exchange) Start(comm transport.Comm, epoch transport.Epoch, tag int, a Algorithm, done Ender) {
	x.open(comm, epoch, tag, a, done)
	if ended, err := x.run(); ended {
		done.Ended(err)
	}
}

// open prepares x for an operation.
func (x *Exchange) open(comm transport.Comm, epoch transport.Epoch, tag int, a Algorithm, done Ender) {
	if comm != x.comm {
		x.comm, x.rank, x.size = comm, comm.Rank(), comm.Size()
		x.starter, _ = comm.(transport.Starter)
	}
	x.epoch, x.tag, x.algorithm, x.done = epoch, tag, a, done
	x.step, x.more = 0, true
	if x.err.Load() != nil {
		x.err.Store(nil)
	}
	if x.without.Load() != nil {
		x.without.Store(nil)
	}
}

// Step returns the operation's name and its current step, from 1. It is called for a request that
// has not ended.
func (x *Exchange) Step() (operation string, number int) { return x.Name, x.step }

// Ender returns the Ender given to Start.
func (x *Exchange) Ender() Ender { return x.done }

// Rank returns this rank's number.
func (x *Exchange) Rank() int { return x.rank }

// Size returns the number of ranks.
func (x *Exchange) Size() int { return x.size }

// Send requests that b is sent to rank to. If it is the first request of the step, it may be sent
// at once. So an algorithm that receives long messages in a step requests these first.
func (x *Exchange) Send(to int, b []byte) {
	if x.starter != nil || len(x.requests) > 0 || !x.comm.TrySend(x.member(to), x.tag, x.epoch, x.Signature, b) {
		x.add(transport.Sending, to, b)
	}
}

// SendShared is Send of bytes that do not change any more.
func (x *Exchange) SendShared(to int, b []byte) {
	x.add(transport.Sending, to, b).Mode = transport.Shared
}

// Recv requests exactly len(b) bytes from rank from.
func (x *Exchange) Recv(from int, b []byte) {
	x.add(transport.Receiving, from, b)
}

// Take requests one message of any length from rank from.
func (x *Exchange) Take(from int) {
	x.add(transport.Receiving, from, nil).Take = true
}

// Taken returns what the k-th request of the previous step took, for reading only. It
// is called before the requests of the current step.
func (x *Exchange) Taken(k int) []byte { return x.requests[:k+1][k].Buf }

// member returns the rank of comm that has this number in the step.
func (x *Exchange) member(number int) int {
	if x.members == nil {
		return number
	}
	return x.members[number]
}

// add adds a request to the step. It reuses the memory of earlier steps.
func (x *Exchange) add(kind transport.Kind, peer int, b []byte) *transport.Request {
	n := len(x.requests)
	if n == cap(x.requests) {
		x.requests = append(x.requests, transport.Request{})
	}
	x.requests = x.requests[:n+1]
	r := &x.requests[n]
	r.Kind, r.Peer, r.Buf, r.Mode, r.Take = kind, x.member(peer), b, 0, false
	r.Tag, r.Epoch, r.Signature, r.Done = x.tag, x.epoch, x.Signature, x
	return r
}

// Copy places bytes of this rank's own while the messages of the step are under way. A step calls
// it at most once.
func (x *Exchange) Copy(to, from []byte) { x.to, x.from = to, from }

func (x *Exchange) copy() {
	place(x.to, x.from)
	x.to, x.from = nil, nil // though there may be no bytes
}

// place copies bytes of the program that may be where they belong already. Nothing is written in
// place, because others may be reading it.
func place(to, from []byte) {
	if unsafe.SliceData(to) != unsafe.SliceData(from) {
		copy(to, from)
	}
}

// run carries out steps until one has to wait for messages. It returns whether the operation has
// ended, and its error.
func (x *Exchange) run() (ended bool, err error) {
	for {
		if err := x.err.Load(); err != nil {
			return x.end(*err)
		}
		if !x.more {
			return x.end(nil)
		}
		x.requests = x.requests[:0]
		if err := x.ask(); err != nil || len(x.requests) == 0 {
			x.to = nil
			return x.end(err)
		}
		ended := int32(x.start())
		x.copy()
		if all := int32(len(x.requests)); ended < all {
			x.ended.Add(started)
			if x.err.Load() != nil {
				x.cancel()
			}
			if x.ended.Add(ended+1) <= started+all {
				return false, nil
			}
			x.ended.Store(0)
		}
	}
}

// started is added to ended when run has begun all requests of the step.
const started = 1 << 30

// start begins the requests of the step, and returns how many have ended at once.
func (x *Exchange) start() (ended int) {
	if x.starter != nil {
		if ended = x.starter.Start(x.requests); ended > 0 {
			for i := range x.requests {
				if r := &x.requests[i]; r.Ended {
					x.check(r)
				}
			}
		}
		return ended
	}
	for i := range x.requests {
		switch r := &x.requests[i]; {
		case r.Kind == transport.Receiving:
			if x.comm.TryRecv(r) {
				x.check(r)
				ended++
			}
		case r.Mode == 0 && x.comm.TrySend(r.Peer, r.Tag, r.Epoch, r.Signature, r.Buf):
			ended++
		default:
			x.comm.Isend(r)
		}
	}
	return ended
}

// ask calls the algorithm until a step has requests, or the last one is done.
func (x *Exchange) ask() (err error) {
	defer future.Catch(&err) // a reduction may be the user's function
	for x.more && len(x.requests) == 0 {
		x.more = x.algorithm.Step(x.step, x)
		x.step++
		if len(x.requests) == 0 {
			x.copy()
		}
	}
	return nil
}

// Completed counts a message. After the last of a step it begins the next.
func (x *Exchange) Completed(r *transport.Request) {
	if r.Kind == transport.Joining { // the only one
		_, err := x.met(r.Err)
		x.done.Ended(err)
		return
	}
	x.check(r)
	all := started + 1 + int32(len(x.requests)) // read before another goroutine may continue
	if x.ended.Add(1) < all {
		return
	}
	x.ended.Store(0)
	if ended, err := x.run(); ended {
		x.done.Ended(err)
	}
}

// check fails the operation if a message is not what it should be. Close needs no rank that has
// released the communicator: it carries out its other steps, which others may need, and then fails.
// A rank that has left makes no more calls of Stopping: see stop.Never.
func (x *Exchange) check(r *transport.Request) {
	_, tooLong := errors.AsType[*transport.TruncateError](r.Err)
	left, gone := errors.AsType[*transport.LeftError](r.Err)
	switch s := &r.Status; {
	case gone && left.Released && x.Signature.Kind() == signature.Close:
		x.without.Store(left)
	case gone && x.Signature.Kind() == signature.Stopping:
		if r.Kind == transport.Receiving {
			stop.Never(r.Buf)
		}
	case r.Err != nil && !tooLong:
		x.fail(r.Err)
	case r.Kind != transport.Receiving:
	case r.Signature != s.Signature && !r.Signature.Fits(s.Signature):
		x.fail(&transport.MismatchError{Number: transport.CollectiveNumber(r.Tag), Own: r.Signature, Source: s.Source, Theirs: s.Signature})
	case !r.Take && s.Bytes != len(r.Buf):
		x.fail(&LengthError{s.Source, s.Bytes, len(r.Buf)})
	}
}

func (x *Exchange) fail(err error) {
	if x.err.CompareAndSwap(nil, &err) && x.ended.Load() >= started {
		x.cancel() // else run does
	}
}

// cancel ends the other requests of the step after one had an error, so that
// the operation ends. Requests that can't be cancelled end with the epoch.
func (x *Exchange) cancel() {
	for i := range x.requests {
		x.comm.Cancel(&x.requests[i])
	}
}
