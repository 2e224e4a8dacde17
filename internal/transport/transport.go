package transport

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/mpicx/go-mpicx/internal/record"
	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// A Messenger is the part of a Comm that error channels use. It carries the messages of
// Listeners, to which epochs and Revoke do not apply.
type Messenger interface {
	Rank() int
	Size() int
	// Listen gives l all messages that other Listeners send to this rank, including those
	// that have come already, until Close. It is a receive from any rank that is always
	// pending. l is also told of members whose processes die, this one too, and of members that
	// are dead already; of some perhaps twice. If Features.Deaths is not set, it is told of
	// none. A side has at most one Listener.
	Listen(l Listener)
	// Poke says that the Listener may have something to send. Next is called now, or by a
	// goroutine that is busy with Listeners already; so calls do not nest without end.
	Poke()
	// Close releases this side. No other method is called after it.
	Close() error
}

// A Comm is one rank's side of a communicator. Its methods may be called from many
// goroutines at once. None of them blocks: an operation ends by a call of its request's
// Done, on any goroutine, possibly before the method that started it returns.
//
// Messages from one rank to another that match the same receive arrive in the order in which
// they were sent (F5).
type Comm interface {
	Messenger
	Features() Features
	// Machine returns the number of the machine on which the process of a rank runs. It is the
	// same at all members.
	Machine(rank int) int

	// Epoch returns the epoch that this rank is in. The caller reads it before it checks
	// whether there is an error to report, and puts it into its requests. A request whose
	// check was before an Advance then ends like those that were pending.
	Epoch() Epoch
	// Advance moves this rank to the epoch after an error of the communicator of the given
	// generation: this one, or one that it is derived from. Pending requests, and later ones
	// with older epochs, end with cause, and their buffers are free once Quiesce says so.
	// Messages of older epochs are dropped, wherever they are. Messages of the new epoch that
	// have arrived already wait for receives.
	Advance(generation int, cause error)
	// Quiesce calls then once nothing is done any more with the buffers of requests that have
	// ended, or were about to end, when it was called: no message is copied, and no Completed of a
	// collective operation's request runs, in which the operation may take its next step. Then is
	// called before Quiesce returns or later, on any goroutine.
	Quiesce(then func())

	// TrySend sends buf to rank dest if it can do so at once, and says whether it did. If it
	// did, buf may be changed; otherwise nothing has happened. It is Isend without a Request,
	// for the most frequent messages.
	TrySend(dest, tag int, epoch Epoch, w signature.Word, buf []byte) bool
	// Isend sends r.Buf to r.Peer. A send of r.Mode Synchronous is done when a
	// receive has matched it, any other as soon as r.Buf may be changed.
	Isend(r *Request)
	// Irecv receives a message from r.Peer with r.Tag into r.Buf or, if r.Alloc is set, into
	// the memory that r.Alloc returns.
	Irecv(r *Request)
	// TryRecv is Irecv that returns true if the message has come. r has then ended without an
	// error, and its Done is not called.
	TryRecv(r *Request) (received bool)
	// Probe is done when a message that Irecv would match could be received. It
	// fills in Status and leaves the message.
	Probe(r *Request)
	// Call says that this rank makes a collective call in an epoch, and returns its number there,
	// from 1, which is the tag of its messages. If a message comes, or has come, from a rank that
	// has made another call in its place, this rank is halted: its requests of the epoch, now
	// and later, end with a *MismatchError.
	Call(e Epoch, w signature.Word) (number int)
	// Called returns the number and the word of the latest call in this rank's epoch; the number
	// is 0 if there is none.
	Called() (number int, w signature.Word)
	// ID identifies the communicator in records, the same at all members.
	ID() uint64
	// Record appends to calls the latest collective calls of a member, on all its communicators,
	// the oldest first. Complete says that it has made no others before. Ok is false if this
	// process can't read them: the member is on another machine, or its process shares no memory
	// with this one. A death changes nothing. What another process has written may be anything.
	Record(rank int, calls []record.Call) (all []record.Call, complete, ok bool)
	// Clock says where this rank's record finds the time: see record.Record.
	Clock(seconds *atomic.Uint32)
	// Mismatch returns the error with which this rank is halted, until Advance or Revoke, or nil.
	Mismatch() error
	// Mprobe is Probe that takes the message: no other request matches it, and r keeps it until
	// Mrecv.
	Mprobe(r *Request)
	// Mrecv is Irecv of the message that r has taken by Mprobe. r keeps the epoch of the Mprobe.
	// It ends with ErrCancelled if the send was cancelled in the meantime, and with a *DeadError
	// if the sender has died before it had sent all bytes.
	Mrecv(r *Request)
	// Cancel ends r with ErrCancelled unless it has been matched, and says whether it did.
	Cancel(r *Request) bool

	// Sub makes a communicator of the given ranks of this one (all, if members is nil) and
	// returns this rank's side of it. It does not wait. Every member calls it with the same
	// members and name. If a member does not, the others can still use their sides. The new
	// communicator begins in name.Epoch. If there can be none of name.Generation, all members get
	// a *GenerationError.
	Sub(name Name, members []int) (Comm, error)

	// Revoke ends this rank's part for good: its requests, now and later, end with cause, and
	// messages to it are dropped. Epoch and Advance still work as before.
	Revoke(cause error)

	// Release says that this rank's program begins no more operations on the communicator. Pending
	// ones continue, with all steps of its collective calls. On this communicator the rank is then
	// like one whose program has ended: requests of others that need it end with a *LeftError whose
	// Released is set, when its messages have arrived. These are requests that name the rank and
	// for which it has no message or receive, those of collective calls that it has not made, and
	// those from AnySource that Leave describes. The rank does not die because of it. A request may
	// stay pending until the program has waited for it for a while and, where ranks learn of this
	// by messages, for as long again, up to a minute more. A second call does nothing.
	Release()

	// Die ends this process for the others, on all communicators, as if it had been killed. Its
	// own requests end with ErrDied, and it sends and receives nothing more.
	//
	// Requests that need a dead process end with a *DeadError. These are requests that name it,
	// unless its message has come, and requests of collective operations, but not those from
	// AnySource.
	Die()
	// Leave says that the rank's program has ended, and with it all collective calls that it has
	// begun. The rank owes nothing any more: its communicators only carry errors. It is called
	// once. If dies is set the rank dies, when its messages have arrived; otherwise it dies if
	// another rank needs it. If Features.Deaths is not set it does not die: requests that need it
	// end with a *LeftError, when its messages have arrived, errors included. Calls of the ranks
	// that need it are compared before.
	//
	// Further rules apply to requests that the program of a rank waits for: requests whose
	// Completer is an Awaiter and says so. If such a request is from AnySource, and the programs
	// of all other members have ended, it needs one of them. (While the program does not wait, the
	// rank may still send to itself.) If all other members have died, and the Completer is an
	// Acknowledger and says so, the request ends with a *DeadError.
	Leave(dies bool)
	// HasReturned says whether the program of a member is known to have ended, by a Leave that was
	// not to die, or the member to have released the communicator. It may have died since, because
	// others needed it.
	HasReturned(rank int) bool
	// Look is called after this rank's program has begun to wait. It handles requests that need
	// ranks whose programs have ended, or any other rank when all others have died, and has the
	// calls of ranks compared that may wait for each other in different ones. It costs little.
	Look()

	// EachPending calls visit for the requests of this rank that have not ended, to find out why
	// a program hangs. A request does not end while visit looks at it. visit must not call a
	// method of a Comm.
	EachPending(visit func(*Request))
	// EachUnreceived calls visit for the messages of programs, from living ranks, that have come
	// to this rank in its epoch and that no receive has matched. visit must not call a method of
	// a Comm.
	EachUnreceived(visit func(Status))
}

// Pending returns the requests that c.EachPending visits. They may be read only while the program
// is not running.
func Pending(c Comm) []*Request {
	var all []*Request
	c.EachPending(func(r *Request) { all = append(all, r) })
	return all
}

// Features say what a transport can do, and what is cheap for it.
type Features struct {
	Name string // "local", "mpi"
	// Deaths: it detects and reports deaths of processes.
	Deaths bool
	// SharedCores: ranks compete for the cores. The cost of a collective operation is then the
	// number of its messages rather than its depth.
	SharedCores bool
	// Board is the most bytes that a rank may show another on the Comm, which then is a Board; 0:
	// there is none. It is the same at all members.
	Board int
}

// A Mode says how a message is sent.
type Mode uint8

const (
	// Synchronous sends are done only once a receive has matched them.
	Synchronous Mode = 1 << iota
	// Shared says that the bytes of Buf will never be changed. A transport within one process may
	// then give them to a receiver without a copy, if it asks for this (Request.Take).
	Shared
)

// A Request is one operation under way. The caller fills in the first group of
// fields and leaves the Request alone until Done is called, then reads the
// second; after that it may be used again.
type Request struct {
	Buf   []byte
	Peer  int // destination or source
	Tag   int
	Mode  Mode
	Epoch Epoch
	Done  Completer
	// Signature describes the call. A message has its sender's signature. The request that
	// receives it may have another; the Completer compares them.
	Signature signature.Word
	// Alloc, if not nil, returns memory for a message of n bytes.
	Alloc func(n int) []byte
	// Meeting is what a rank that meets others on a board shows and needs.
	Meeting *Meeting
	// Soon, if not nil, lets messages come. TryRecv calls it if the message has not come, before it
	// posts the receive, or looks for the message for about as long: the program is about to wait.
	Soon Yielder
	// Light says that Completed only notes the end, if that is no error and the message has this
	// Signature: it may be called with the transport's locks held.
	Light bool
	// Take says that Buf of a receive is set to the sender's bytes if they are Shared, else to a
	// copy. The receiver must not write to it.
	Take bool

	Status Status
	Err    error

	Private
}

// Needs says whether the death of a rank ends the request: it names that rank, or is of a
// collective operation.
func (r *Request) Needs(rank int) bool { return r.Peer == rank || IsCollective(r.Tag) }

// WaitsFor says whether the request names the rank, or is a call that meets others and misses it.
func (r *Request) WaitsFor(rank int) bool {
	return r.Peer == rank || r.Kind == Joining && r.Meeting.Missing>>rank&1 > 0
}

// Matches says whether a receive or probe matches the message.
func (r *Request) Matches(s Status) bool {
	return (r.Peer == s.Source || r.Peer == AnySource) && (r.Tag == s.Tag || r.Tag == AnyTag && s.Tag >= 0)
}

// IsAwaited says whether the program waits for the request, according to its Completer.
func (r *Request) IsAwaited() bool {
	a, ok := r.Done.(Awaiter)
	return ok && a.Awaited()
}

// HasAcknowledged says whether the program has acknowledged the deaths of all other members.
func (r *Request) HasAcknowledged() bool {
	m, ok := r.Done.(Acknowledger)
	return ok && m.Acknowledged()
}

// Fill gives a receive the message, for a transport that has all its bytes. The bytes are the
// caller's unless they are shared. An error is in r.Err.
func (r *Request) Fill(s Status, bytes []byte, shared bool) {
	r.Status = s
	switch {
	case r.Take && shared:
		r.Buf = bytes
	case r.Take:
		r.Buf = slices.Clone(bytes)
	case r.Alloc != nil:
		copy(r.Alloc(len(bytes)), bytes)
	case len(bytes) > len(r.Buf):
		r.Err = &TruncateError{Status: s, Room: len(r.Buf)}
	default:
		copy(r.Buf, bytes)
	}
}

// Status says which message was received or probed.
type Status struct {
	Source, Tag int
	Bytes       int // its length, even if the buffer was too small
	Signature   signature.Word
}

// A Driver is a Comm whose messages move while a goroutine waits in it, and otherwise only from
// time to time.
type Driver interface {
	// Await blocks until s is Woken, ended is closed, or the transport has Failed. It says whether
	// s is Woken.
	Await(s waiting.Sleeper, ended <-chan struct{}) (woken bool)
	// Glance makes messages move for a moment. What a goroutine is about to wait for may then be
	// done.
	Glance()
	// Failed returns the error after which no message moves any more, or nil.
	Failed() error
	// OnFailure has told called with this error when there is one, on any goroutine: the program
	// may need no message, and would not hear of it. It takes the place of the last one; nil:
	// nobody is told.
	OnFailure(told func(error))
	// Watch adds n to the number of goroutines that wait in other ways.
	Watch(n int)
	// Reason returns how the process of a rank has ended, or "" if it has not or the launcher does
	// not tell. If the process is known to have ended, Reason waits until the launcher has told
	// how, or until ctx ends.
	Reason(ctx context.Context, rank int) string
}

// A Starter is a Comm that can begin several requests for less than their sum.
type Starter interface {
	// Start begins sends and receives, whose Kind says which, as Isend and Irecv do, in their
	// order. It returns how many have ended at once. They are Ended, and their Done is not called.
	Start(rs []Request) (ended int)
}

// A Completer is told when a request has ended.
type Completer interface {
	// Completed must not block; it may start operations.
	Completed(r *Request)
}

// A Yielder lets other goroutines run.
type Yielder interface{ Yield() }

// A Stepper is the Completer of the messages of an operation that has steps.
type Stepper interface {
	Completer
	// Step returns the operation's name, and the number of its present step, from 1.
	Step() (operation string, number int)
}

// An Awaiter is a Completer that knows whether the program waits for the request.
type Awaiter interface {
	Completer
	// Awaited must not block, nor call the transport.
	Awaited() bool
}

// An Acknowledger is an Awaiter that knows whether the program has acknowledged the deaths of all
// other members. Until it has, a receive from AnySource stays pending.
type Acknowledger interface {
	Awaiter
	// Acknowledged must not block for long, nor call the transport.
	Acknowledged() bool
}

// A Listener is one rank's part in an error channel. Its methods must not block; they may start
// operations, and Poke. No Take is called inside of another.
type Listener interface {
	// Take takes a message. Messages of one rank come in the order in which they were sent;
	// messages of different ranks may come at once.
	Take(from int, payload []byte)
	// Next returns the next message to send and its destination, or false if there is none. The
	// message must not be changed afterwards. After Poke and Listen, Next is called until it
	// returns false, by one goroutine at a time, and each time as late as possible, because
	// messages that have come by then may make this one unnecessary.
	Next() (to int, payload []byte, ok bool)
	// Died says that the process of a rank has died. It is called on any goroutine.
	Died(rank int)
	// Purpose names, in a word, the purpose of a message that Next has returned; "" if there is
	// no word for it.
	Purpose(payload []byte) string
}
