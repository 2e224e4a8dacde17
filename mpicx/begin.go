package mpicx

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/element"
	"github.com/mpicx/go-mpicx/internal/ledger"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// ready returns the error of a call that is refused: on a nil communicator, after the end
// of its job, or without a context.
func (c *comm) ready(op string, ctx context.Context) error {
	switch {
	case c == nil:
		return mpiErrorf(op, ClassComm, nilComm)
	case c.proc.stage.Load() == stageOver:
		return jobOver(op, c.name)
	case ctx == nil:
		return mpiErrorf(op, ClassOther, nilContext)
	}
	return nil
}

func (c *Comm) ready(op string, ctx context.Context) error { return c.of().ready(op, ctx) }

// nowhere returns the future of an operation on a nil communicator.
func nowhere[T any](op string) *future.Future[T] {
	return future.Failed[T](mpiErrorf(op, ClassComm, nilComm))
}

// begin begins the operation op. It returns the operation's epoch, or the error that ends the
// operation at once: an error that this rank has not been told of, or that c is closed. An
// operation that is *withheld begins and ends, but sends nothing.
func (c *comm) begin(op string) (transport.Epoch, error) {
	c.proc.prompt.begins()
	epoch := c.t.Epoch() // before the check, see transport.Comm
	if !c.ledger.NeedsLook() {
		return epoch, nil
	}
	c.proc.exitIfDead()
	err := c.untold()
	if err == nil && c.hasRaised() {
		err = &withheld{c, op, epoch}
	}
	return epoch, ofOperation(op, err)
}

// withheld is an operation that begins when this rank has raised an error, and before the verdict.
// A peer that does not know of the error would match it (T1, C1).
type withheld struct {
	comm  *comm
	op    string
	epoch transport.Epoch
}

func (*withheld) Error() string { return "mpicx: this rank has raised an error" }

// orError calls ended with err or, if that is *withheld, with the error that ends the operation,
// when it is there.
func orError(err error, ended func(error)) {
	if w, ok := err.(*withheld); ok {
		done := func(err error) { ended(w.comm.failure(w.op, err)) }
		w.comm.receiveError(&onlyError{name: w.op, done: done}, w.epoch, transport.NoTag)
		return
	}
	ended(err)
}

// onlyError is a receive that no message matches, so only an error ends it, or Cancel.
type onlyError struct {
	name    string // of the operation
	aside   bool   // the operation itself waits for something else
	request transport.Request
	done    func(error)
}

// receiveError begins w in epoch e.
func (c *comm) receiveError(w *onlyError, e transport.Epoch, tag int) {
	w.request.Peer, w.request.Tag, w.request.Epoch, w.request.Done = c.rank, tag, e, w
	c.t.Irecv(&w.request)
}

func (w *onlyError) Operation() string { return w.name }

func (w *onlyError) Completed(r *transport.Request) { w.done(r.Err) }

// failed returns the future of an operation on c that was refused with err. c may be nil.
func failed[T any](c *comm, err error) *future.Future[T] {
	f, p := future.New[T]()
	if c != nil {
		waiting.Of(f).Keep(c.keeperAfter(err))
	}
	orError(err, func(err error) { p.Complete(*new(T), err) })
	return f
}

// keeperAfter returns the keeper of an operation that begin has refused with err. It is nil
// if c is closed, because the operation itself says so.
func (c *comm) keeperAfter(err error) waiting.Keeper {
	if isClosedError(err) {
		return nil
	}
	if w, ok := err.(*withheld); ok { // the transport knows another request
		return &keeper{comm: c, call: w.op, mode: ledger.Take}
	}
	return c.keeper
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

// check returns an error for the first bad argument.
type check struct {
	op  string
	err error
}

// checkOf checks the elements of an operation's buffers first.
func checkOf[T any](op string) check {
	return check{op: op, err: mpiError(op, element.TypeOf[T]().Unfit)}
}

// that has its arguments allocated, whether or not it is ok.
func (k *check) that(ok bool, class Class, format string, args ...any) {
	if !ok && k.err == nil {
		k.err = mpiErrorf(k.op, class, format, args...)
	}
}

func (k *check) root(root int, c *comm) {
	if c != nil && (root < 0 || root >= c.size) {
		k.that(false, ClassRoot, "root %d of %s, expected 0 to %d", root, c.name, c.size-1)
	}
}

// isRank says whether c is not nil, and this is its rank.
func (c *comm) isRank(rank int) bool { return c != nil && c.rank == rank }

func (k *check) length(what string, got, want int) {
	if got != want {
		k.that(false, ClassBuffer, "%s has %d elements, expected %d", what, got, want)
	}
}

// counts checks one count for each rank, against the length of the buffer for all of them.
func (k *check) counts(what string, counts []int, buffer int, c *comm) {
	k.countsOf(what, counts, buffer, c.size, "rank")
}

// countsOf is counts for n ranks or neighbours, called who in the error. It allocates only for an
// error.
func (k *check) countsOf(what string, counts []int, buffer, n int, who string) {
	if len(counts) != n {
		k.that(false, ClassCount, "%d %s counts, expected one for each of the %d %ss", len(counts), what, n, who)
	}
	sum := 0
	for r, n := range counts {
		if n < 0 {
			k.that(false, ClassCount, "%s count %d of %s %d, expected 0 or more", what, n, who, r)
		}
		if n > math.MaxInt-max(sum, 0) {
			k.that(false, ClassCount, "%s count %d of %s %d, expected counts whose sum, %d so far, is the buffer's %d elements", what, n, who, r, sum, buffer)
		}
		sum += n
	}
	if sum != buffer {
		k.that(false, ClassBuffer, "%s buffer has %d elements, expected %d, the sum of the counts", what, buffer, sum)
	}
}

// checkPoint checks the arguments of a point-to-point operation. A receive may be from AnySource,
// and have AnyTag.
func (c *comm) checkPoint(op string, peer, tag int, receives bool) error {
	least, anySource, anyTag := 0, "", ""
	if receives {
		least, anySource, anyTag = AnySource, ", AnySource", " or AnyTag"
	}
	if (peer < least || peer >= c.size) && peer != ProcNull {
		return mpiErrorf(op, ClassRank, "rank %d of %s, expected 0 to %d%s or ProcNull", peer, c.name, c.size-1, anySource)
	}
	if tag < 0 && (tag != AnyTag || !receives) {
		return mpiErrorf(op, ClassTag, "tag %d, expected 0 or more%s", tag, anyTag)
	}
	return nil
}

// In place (MPI_IN_PLACE): an operation may use one buffer for both send and recv. If they have
// the same length, they are the same slice. If one is a part of the other, it is the part at
// its rank's place: in Gather, the root's send is recv[root*len(send):][:len(send)]. Any other
// overlap of buffers is an *MPIError.

// inPlace checks that part and whole share no memory, or that part begins at whole[at] for one
// of the given places. It says whether they share memory.
func inPlace[T any](k *check, partName string, part []T, wholeName string, whole []T, at ...int) bool {
	if k.err != nil || !element.Overlap(element.Bytes(part), element.Bytes(whole)) {
		return false
	}
	var places []string
	for _, first := range at {
		if first < len(whole) && &part[0] == &whole[first] {
			return true
		}
		places = append(places, fmt.Sprintf("%s[%d:]", wholeName, first))
	}
	k.that(false, ClassBuffer, "%s and %s overlap, expected no memory in common, or that %[1]s is %[3]s", partName, wholeName, strings.Join(places, " or "))
	return true
}

// same is inPlace for buffers of the same length.
func same[T any](k *check, send, recv []T) bool { return inPlace(k, "recv", recv, "send", send, 0) }
