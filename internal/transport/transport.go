package transport

import (
	"fmt"
	"slices"

	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// A Messenger is the part of a Comm that error channels use: it carries the messages of
// Listeners, which know neither epochs nor Revoke.
type Messenger interface {
	Rank() int
	Size() int
	// Listen has l take what other Listeners send this rank, from what has come
	// already on, until Close: a receive from anybody that is always pending. L is
	// also told of the members whose process dies, this one too, and of those that
	// are dead already; of one perhaps twice, and of none where Features.Deaths is
	// not set. A side has one Listener at most.
	Listen(l Listener)
	// Poke says that the Listener may have something to send. It is asked for that,
	// now or by a goroutine that is busy with Listeners already, so that they do
	// not nest without end.
	Poke()
	// Close gives back what this side holds. No other method is called after it.
	Close() error
}

// A Comm is one rank's side of a communicator. Its methods may be called from
// many goroutines at once. None of them blocks: operations say how they ended
// by calling their request's Done, possibly before the method that started
// them returns, and on whatever goroutine completes them.
//
// Messages from one rank to another that match the same receive arrive in the
// order in which they were sent (design rule F5).
type Comm interface {
	Messenger
	Features() Features
	// Machine is the number of the machine on which the process of a rank runs, the same at
	// all members.
	Machine(rank int) int

	// Epoch is the epoch this rank is in. The caller reads it before it decides
	// that there is no error to report, and puts it into its requests: one that
	// was decided on before Advance then ends like those that were pending.
	Epoch() Epoch
	// Advance moves this rank to the epoch after an error of the communicator
	// itself or of one it is derived from, of the given generation. Its pending
	// requests, and those still to come with older epochs, end with cause, their
	// buffers free; messages of older epochs are dropped, wherever they are.
	// Messages of the new epoch that have arrived already wait for receives.
	Advance(generation int, cause error)

	// TrySend sends buf to rank dest if that can be done with at once, and says
	// whether it did: then buf may be changed again. Otherwise nothing has
	// happened. It is Isend without a Request, for the most frequent of messages.
	TrySend(dest, tag int, epoch Epoch, w signature.Word, buf []byte) bool
	// Isend sends r.Buf to r.Peer. A send of r.Mode Synchronous is done when a
	// receive has matched it, any other as soon as r.Buf may be changed.
	Isend(r *Request)
	// Irecv receives a message from r.Peer with r.Tag into r.Buf or, if r.Alloc
	// is set, into what that returns.
	Irecv(r *Request)
	// Probe is done when a message that Irecv would match could be received. It
	// fills in Status and leaves the message.
	Probe(r *Request)
	// Call says that this rank makes a collective call in an epoch, and returns its number there,
	// from 1, with which its messages are tagged. If a message has come, or comes later, of a
	// rank that has made another call in its place, this rank is halted: its requests of the
	// epoch, and those still to come, end with a *MismatchError.
	Call(e Epoch, w signature.Word) (number int)
	// Called returns the number of the latest call in this rank's epoch, 0 for none, and what it is.
	Called() (number int, w signature.Word)
	// Mismatch returns the error that this rank is halted with, until Advance or Revoke; else nil.
	Mismatch() error
	// Mprobe is Probe that takes the message out of matching: no other request finds it,
	// and r has it until Mrecv.
	Mprobe(r *Request)
	// Mrecv is Irecv of the message that r has since its Mprobe has ended. R keeps the
	// epoch of that. It ends with ErrCancelled if the send was cancelled meanwhile, and with
	// a *DeadError if the sender has died before it gave all bytes away.
	Mrecv(r *Request)
	// Cancel ends r with ErrCancelled unless it has been matched, and says
	// whether it did. Which kinds it can cancel is in Features.
	Cancel(r *Request) bool

	// Sub makes a communicator of the given ranks of this one (all, if members
	// is nil) and returns this rank's side of it. It waits for nobody. Every member calls
	// it with the same members and name; one that does not takes no part, and
	// keeps nobody from using theirs. The new communicator begins in name.Epoch. If
	// there can be none of name.Generation, the error is a *GenerationError, at all alike.
	Sub(name Name, members []int) (Comm, error)

	// Revoke ends this rank's part for good: its requests, and those still to
	// come, end with cause, and messages to it are dropped. Epoch and Advance go
	// on as if nothing had happened.
	Revoke(cause error)

	// Die ends this process for the others, on all communicators, as if it had
	// been killed. What it began ends with ErrDied, here, and nothing more leaves
	// or reaches it.
	//
	// Requests that need a dead process end with a *DeadError: those that name it,
	// unless its message is there, and those of collective operations. One from
	// AnySource does not.
	Die()
	// Leave says that the rank's program has ended. Its communicators still serve
	// errors and what it began; but if somebody needs more of it, it dies. It does so
	// anyway if the program has failed, once what it has sent is there.
	//
	// More than that is for requests which the program of a rank waits for, that is, whose
	// Completer is an Awaiter and says so. If it is from AnySource, and the programs of all
	// other members have ended, it needs one of them. (While nobody waits for it the rank
	// may yet send to itself.) If these have all died, and its Completer is an Acknowledger and
	// says so, it ends with a *DeadError. And where Features.Deaths is not set nothing dies: requests
	// that are not of collective operations and need ranks whose programs have ended then end
	// with a *ReturnedError, once what these have sent is there, errors included.
	Leave(failed bool)
	// Look has requests that need ranks whose programs have ended, or all other ranks,
	// which have died, seen to, after this rank's program has begun to wait for one; and calls
	// compared that differ between ranks which only wait for each other. It costs little.
	Look()

	// EachPending calls visit for the requests of this rank that have not ended,
	// for people who ask why a program hangs. While visit looks at a request it
	// does not end; visit calls no method of a Comm.
	EachPending(visit func(*Request))
	// EachUnreceived calls visit for the messages of programs that have come to this rank in
	// its epoch, from ranks that live, and that no receive has met. Visit calls no method of
	// a Comm.
	EachUnreceived(visit func(Status))
}

// Pending returns what c.EachPending visits. Only a program that stands still may
// look into it.
func Pending(c Comm) []*Request {
	var all []*Request
	c.EachPending(func(r *Request) { all = append(all, r) })
	return all
}

// Features say what a transport can do, and what is cheap for it.
type Features struct {
	Name string // "local", "mpi"
	// CancelSend: Cancel takes back sends, not only receives and probes.
	CancelSend bool
	// Deaths: it notices that a process has died, and tells.
	Deaths bool
	// SharedCores: ranks compete for the cores, so that the number of messages
	// counts in a collective operation, rather than its depth.
	SharedCores bool
}

// A Mode says how a message is sent.
type Mode uint8

const (
	// Synchronous sends are done only once a receive has matched them.
	Synchronous Mode = 1 << iota
	// Shared says that nobody will ever change the bytes of Buf again, so that a
	// transport within one process may hand them to an Alloc-less receiver that
	// asks for them (Request.Take) as they are.
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
	// Signature says what was called. A message has its sender's; what it is received by may
	// have another, which is for the Completer to compare.
	Signature signature.Word
	// Alloc, if not nil, returns where to put a message of n bytes.
	Alloc func(n int) []byte
	// Take says that a receive wants the bytes themselves in Buf, which it will
	// not write to: the sender's, if they are Shared, else a copy.
	Take bool

	Status Status
	Err    error

	Private
}

// Needs says whether a request ends with the death of the member of a rank: one that
// names it, or is of a collective operation.
func (r *Request) Needs(rank int) bool { return r.Peer == rank || IsCollective(r.Tag) }

// Matches says whether a receive or probe is for the message.
func (r *Request) Matches(s Status) bool {
	return (r.Peer == s.Source || r.Peer == AnySource) && (r.Tag == s.Tag || r.Tag == AnyTag && s.Tag >= 0)
}

// IsAwaited says whether the program waits for the request, as its Completer knows.
func (r *Request) IsAwaited() bool {
	a, ok := r.Done.(Awaiter)
	return ok && a.Awaited()
}

// HasAcknowledged says whether the program has acknowledged that all others have died.
func (r *Request) HasAcknowledged() bool {
	m, ok := r.Done.(Acknowledger)
	return ok && m.Acknowledged()
}

// Fill gives a receive the message, whose bytes are the caller's unless they are
// shared, for a transport that has them all. The error may be in r.Err.
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
	Bytes       int // its length, even where the buffer was too small
	Signature   signature.Word
}

// A Driver is a Comm whose messages move while somebody waits in it; otherwise now
// and then.
type Driver interface {
	// Await blocks until s is Woken, which it says, or ended is closed, or the
	// transport has Failed.
	Await(s waiting.Sleeper, ended <-chan struct{}) (woken bool)
	// Failed returns why no message moves any more, for good; else nil.
	Failed() error
	// Watch says that so many goroutines more, or fewer, wait in other ways.
	Watch(n int)
	// Doze says that nothing is expected for long, or that it is again. Until then
	// messages that come may wait for some milliseconds, unless a process has died lately.
	Doze(on bool)
}

// A Completer is told when a request has ended.
type Completer interface {
	// Completed must not block; it may start operations.
	Completed(r *Request)
}

// A Stepper is the Completer of the messages of an operation that goes step by step.
type Stepper interface {
	Completer
	// Step says which operation it is, and which step it is in, from 1.
	Step() (operation string, number int)
}

// An Awaiter is a Completer that knows whether the program waits for the request.
type Awaiter interface {
	Completer
	// Awaited must not block, nor call the transport.
	Awaited() bool
}

// An Acknowledger is an Awaiter that knows whether the program has acknowledged the deaths of
// all other members. Until then it is told of them, and a receive from AnySource goes on.
type Acknowledger interface {
	Awaiter
	// Acknowledged must not block for long, nor call the transport.
	Acknowledged() bool
}

// A Listener is one rank's part in an error channel. Its methods must not block;
// they may start operations, and Poke.
type Listener interface {
	// Take takes a message, those of one rank in the order in which it sent them,
	// those of different ranks perhaps at once.
	Take(from int, payload []byte)
	// Next returns what is to be sent next, bytes that nobody will ever change
	// again, and to whom; or false if there is nothing. It is called by one
	// goroutine at a time, after Poke and Listen until it returns false, and each
	// time as late as it can be: what has come meanwhile may make it needless.
	Next() (to int, payload []byte, ok bool)
	// Died says that the process of a rank has died, on any goroutine.
	Died(rank int)
	// Purpose says in a word what a message that Next has returned is for; "" if that is
	// nothing that it has a word for.
	Purpose(payload []byte) string
}

// DeadError is the error of a request that needs a process which has died; or all others,
// if Rank is AnySource.
type DeadError struct{ Rank int }

func (e *DeadError) Error() string {
	if e.Rank == AnySource {
		return "the processes of all other ranks of the communicator have died"
	}
	return fmt.Sprintf("the process of rank %d has died", e.Rank)
}

// ReturnedError is the error of a request that needs a rank whose program has ended; or
// all others, if Rank is AnySource.
type ReturnedError struct{ Rank int }

func (e *ReturnedError) Error() string {
	if e.Rank == AnySource {
		return "every other rank of the communicator has returned"
	}
	return fmt.Sprintf("rank %d has returned", e.Rank)
}

// TruncateError is the error of a receive whose message is longer than its
// buffer. The message is gone, and nothing was written past the buffer.
type TruncateError struct {
	Status Status
	Room   int // bytes
}

func (e *TruncateError) Error() string {
	return fmt.Sprintf("message of %d bytes from rank %d with tag %d is longer than the buffer of %d bytes",
		e.Status.Bytes, e.Status.Source, e.Status.Tag, e.Room)
}

// MismatchError is the error of a rank that has made another collective call than one of its
// peers, in the same place.
type MismatchError struct {
	Number      int // of the call in its epoch
	Own, Theirs signature.Word
	Source      int // theirs
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("collective call %d is %v here, and %v at rank %d", e.Number, e.Own, e.Theirs, e.Source)
}

// LibraryError is what the library below a transport reports.
type LibraryError struct {
	Call  string // of the library, or what it was called for
	Class int    // mpicx.Class
	Text  string // the library's own
}

func (e *LibraryError) Error() string { return e.Call + ": " + e.Text }

type constError string

func (e constError) Error() string { return string(e) }

// ErrCancelled is the error of a request that Cancel ended.
const ErrCancelled = constError("cancelled")

// ErrFenced is the error of all requests of a process that lives, and that others have declared
// dead.
const ErrFenced = constError("others have declared this process dead, and go on without it")

// ErrNoQuorum is ErrFenced of a process that is on a side without a majority.
const ErrNoQuorum = quorumError("this process is on a side of the network without a majority of all processes")

type quorumError string

func (e quorumError) Error() string        { return string(e) }
func (e quorumError) Is(target error) bool { return target == ErrFenced }

// ErrDied is the error of the requests of a process that has died itself.
const ErrDied = constError("this process has died")
