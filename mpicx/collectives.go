package mpicx

import (
	"math"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// Collective operations: every rank of the communicator calls the same ones, in
// the same order and with arguments that fit. Buffers belong to the library
// until the future is done. Where lengths are equal at all ranks by definition,
// a rank that gives another gets, or gives its peers, an *MPIError.

// run starts algorithm a as the operation called name, unless bad says that its
// arguments are. Other ranks may be in it then: what becomes of it there is the
// program's to tell them, by an error. Finish, if not nil, is what is left to do
// once all messages have come.
func (c *Comm) run(name string, bad error, a collective.Algorithm, finish func()) *future.Future[struct{}] {
	return c.newRun().start(name, bad, a, finish)
}

func (c *Comm) newRun() *collectiveRun {
	r := c.proc.idleRuns.get()
	r.comm = c
	return r
}

func (r *collectiveRun) start(name string, bad error, a collective.Algorithm, finish func()) *future.Future[struct{}] {
	c, p := r.comm, r.comm.proc.untyped.get()
	p.Keep(c.keeper)
	r.promise, r.finish = p, finish
	c.start(&r.exchange, name, bad, a, r)
	return p.Future()
}

// start starts a collective operation, or ends it if it can't be.
func (c *Comm) start(x *collective.Exchange, name string, bad error, a collective.Algorithm, done ending) {
	x.Name = name
	c.notInReduction("begins", name)
	epoch, err := c.begin(name)
	if err == nil {
		seq := c.sequence(epoch) // a bad call counts too
		if err = bad; err == nil {
			x.Start(c.t, epoch, transport.CollectiveTag(seq), a, done)
			return
		}
	} else {
		done.Keep(c.keeperAfter(err))
	}
	done.Ended(err)
}

// ending is what a collective operation ends: its future, through Ended.
type ending interface {
	collective.Ender
	Keep(future.Keeper)
}

// collectiveRun is what a collective operation needs only until it is done. Then
// it serves again.
type collectiveRun struct {
	comm     *Comm
	exchange collective.Exchange
	promise  *future.Promise[struct{}]
	finish   func()

	// The most frequent of operations, a reduction of few elements, needs no more.
	doubling collective.AllreduceDoubling
	few      [8]uint64
}

// scratch returns a buffer like of.
func scratch[T any](r *collectiveRun, of []T) []byte {
	if b := bytesOf(r.few[:]); len(of)*sizeOf[T]() <= len(b) {
		return b[:len(of)*sizeOf[T]()]
	}
	return bytesOf(make([]T, len(of)))
}

// Keep puts k behind the future.
func (r *collectiveRun) Keep(k future.Keeper) { r.promise.Keep(k) }

// Ended ends the operation.
func (r *collectiveRun) Ended(err error) {
	c, p, name := r.comm, r.promise, r.exchange.Name // not r's own once it serves again
	if err == nil && r.finish != nil {
		r.finish()
	}
	r.promise, r.finish = nil, nil
	c.proc.idleRuns.put(r)
	p.Complete(struct{}{}, c.failure(name, err))
}

// check returns an error for the first bad argument.
type check struct {
	op  string
	err error
}

func (k *check) that(ok bool, class Class, format string, args ...any) {
	if !ok && k.err == nil {
		k.err = mpiErrorf(k.op, class, format, args...)
	}
}

// funcOp is the name of an operation that is a function.
const funcOp = "op"

func defined[T any](k *check, op reduction, name string) {
	if op == nil && name == funcOp {
		k.that(false, ClassOp, "nil function, expected one that combines two elements of type %T", *new(T))
	} else if op == nil {
		k.that(false, ClassOp, "%s is not defined on %T", name, *new(T))
	}
}

func (k *check) root(root int, c *Comm) {
	k.that(root >= 0 && root < c.Size(), ClassRoot, "root %d of %s, expected 0 to %d", root, c.name, c.Size()-1)
}

func (k *check) length(what string, got, want int) {
	k.that(got == want, ClassBuffer, "%s has %d elements, expected %d", what, got, want)
}

// counts checks one count for each rank against the buffer that holds them all.
func (k *check) counts(what string, counts []int, buffer int, c *Comm) {
	k.that(len(counts) == c.Size(), ClassCount, "%d %s counts, expected one for each of the %d ranks", len(counts), what, c.Size())
	sum := 0
	for r, n := range counts {
		k.that(n >= 0, ClassCount, "%s count %d of rank %d, expected 0 or more", what, n, r)
		k.that(n <= math.MaxInt-max(sum, 0), ClassCount,
			"%s count %d of rank %d, expected counts whose sum, %d so far, is the buffer's %d elements", what, n, r, sum, buffer)
		sum += n
	}
	k.that(sum == buffer, ClassBuffer, "%s buffer has %d elements, expected %d, the sum of the counts", what, buffer, sum)
}

// parts splits a buffer of T by counts.
func parts[T Scalar](buf []T, counts []int) [][]byte {
	split := make([][]byte, len(counts))
	for r, n := range counts {
		split[r] = bytesOf(buf[:n])
		buf = buf[n:]
	}
	return split
}

// Barrier is done once all ranks have begun it (MPI_Ibarrier). It does not say that it
// is done at all: a rank still in it may get the next error in its place (P7). What all
// are to have done together, such as to save a state to go back to, takes TryAll: see
// its example.
func (c *Comm) Barrier() *future.Future[struct{}] {
	if c == nil {
		return nowhere[struct{}]("Barrier")
	}
	return c.run("Barrier", nil, c.barrier(), nil)
}

func (c *Comm) barrier() collective.Algorithm {
	if c.t.Features().SharedCores {
		return collective.Barrier{}
	}
	return &collective.AllreduceDoubling{Op: func(_, _, _ []byte) {}}
}

// Bcast copies buf of rank root into buf of all others, which are as long
// (MPI_Ibcast).
func Bcast[T Scalar](c *Comm, buf []T, root int) *future.Future[struct{}] {
	if c == nil {
		return nowhere[struct{}]("Bcast")
	}
	k := check{op: "Bcast"}
	k.root(root, c)
	return c.run("Bcast", k.err, &collective.Bcast{Buf: bytesOf(buf), Root: root}, nil)
}

// Reduce combines send of all ranks, element by element and in the order of
// ranks, into recv of rank root (MPI_Ireduce). Elsewhere recv is not used.
func Reduce[T Scalar](c *Comm, send, recv []T, op Op, root int) *future.Future[struct{}] {
	return reduce(c, "Reduce", send, recv, opFor[T](op), op.String(), root)
}

func reduce[T any](c *Comm, name string, send, recv []T, op reduction, opName string, root int) *future.Future[struct{}] {
	if c == nil {
		return nowhere[struct{}](name)
	}
	k := check{op: name}
	k.root(root, c)
	defined[T](&k, op, opName)
	acc := recv
	if c.Rank() == root {
		k.length("recv", len(recv), len(send))
	} else {
		acc = make([]T, len(send))
	}
	if k.err == nil {
		copy(acc, send)
	}
	tmp := make([]T, len(send))
	return c.run(name, k.err, &collective.Reduce{Acc: bytesOf(acc), Tmp: bytesOf(tmp), Op: op, Root: root}, nil)
}

// Allreduce is Reduce whose result every rank gets, bit by bit the same
// (MPI_Iallreduce).
func Allreduce[T Scalar](c *Comm, send, recv []T, op Op) *future.Future[struct{}] {
	return allreduce(c, "Allreduce", send, recv, opFor[T](op), op.String())
}

func allreduce[T any](c *Comm, name string, send, recv []T, op reduction, opName string) *future.Future[struct{}] {
	if c == nil {
		return nowhere[struct{}](name)
	}
	k := check{op: name}
	defined[T](&k, op, opName)
	k.length("recv", len(recv), len(send))
	if k.err == nil {
		copy(recv, send)
	}
	r := c.newRun()
	acc, tmp := bytesOf(recv), scratch(r, send)
	if c.t.Features().SharedCores && c.Size() > 2 {
		return r.start(name, k.err, &collective.AllreduceTree{Reduce: collective.Reduce{Acc: acc, Tmp: tmp, Op: op}}, nil)
	}
	r.doubling = collective.AllreduceDoubling{Acc: acc, Tmp: tmp, Op: op}
	return r.start(name, k.err, &r.doubling, nil)
}

// Scan is Reduce whose result at rank r combines send of ranks 0 to r
// (MPI_Iscan).
func Scan[T Scalar](c *Comm, send, recv []T, op Op) *future.Future[struct{}] {
	return scan(c, "Scan", send, recv, opFor[T](op), op.String(), false)
}

// Exscan is Scan of ranks 0 to r-1 (MPI_Iexscan). At rank 0 recv is left alone.
func Exscan[T Scalar](c *Comm, send, recv []T, op Op) *future.Future[struct{}] {
	return scan(c, "Exscan", send, recv, opFor[T](op), op.String(), true)
}

func scan[T any](c *Comm, name string, send, recv []T, op reduction, opName string, exclusive bool) *future.Future[struct{}] {
	if c == nil {
		return nowhere[struct{}](name)
	}
	k := check{op: name}
	defined[T](&k, op, opName)
	k.length("recv", len(recv), len(send))
	a := &collective.Scan{Acc: bytesOf(recv), Tmp: bytesOf(make([]T, len(send))), Op: op, Exclusive: exclusive}
	if exclusive {
		acc := make([]T, len(send))
		copy(acc, send)
		a.Acc, a.Result = bytesOf(acc), bytesOf(recv)
	} else if k.err == nil {
		copy(recv, send)
	}
	return c.run(name, k.err, a, nil)
}

// ReduceScatter is Reduce whose result is spread: rank r gets counts[r] elements
// of it, behind those of the ranks before (MPI_Ireduce_scatter).
func ReduceScatter[T Scalar](c *Comm, send, recv []T, counts []int, op Op) *future.Future[struct{}] {
	return reduceScatter(c, "ReduceScatter", send, recv, counts, opFor[T](op), op.String())
}

func reduceScatter[T any](c *Comm, name string, send, recv []T, counts []int, op reduction, opName string) *future.Future[struct{}] {
	if c == nil {
		return nowhere[struct{}](name)
	}
	k := check{op: name}
	defined[T](&k, op, opName)
	k.counts("recv", counts, len(send), c)
	if k.err == nil {
		k.length("recv", len(recv), counts[c.Rank()])
	}
	all := make([]T, len(send))
	copy(all, send)
	a := &collective.AllreduceTree{Reduce: collective.Reduce{Acc: bytesOf(all), Tmp: bytesOf(make([]T, len(send))), Op: op}}
	return c.run(name, k.err, a, func() {
		first := 0
		for _, n := range counts[:c.Rank()] {
			first += n
		}
		copy(recv, all[first:])
	})
}

// Reductions with a function instead of an Op. It must be associative; it is
// applied in the order of ranks, so it need not commute. It may be called on any
// goroutine, and a panic in it, or an error that it throws, comes out of Wait at its
// rank. T must be free of pointers.
//
// The function must not block. If it waits for an operation, or begins a collective
// one, that ends the reduction at its rank with an *MPIError; so does Signal, after
// the error is on its way. A goroutine that it starts and waits for is not seen: it
// must not do so either.

// ReduceFunc is Reduce with a function.
func ReduceFunc[T any](c *Comm, send, recv []T, op func(a, b T) T, root int) *future.Future[struct{}] {
	if bad := plain[T]("ReduceFunc"); bad != nil && c != nil {
		return failed[struct{}](c, bad)
	}
	return reduce(c, "ReduceFunc", send, recv, byUser(op), funcOp, root)
}

// AllreduceFunc is Allreduce with a function.
func AllreduceFunc[T any](c *Comm, send, recv []T, op func(a, b T) T) *future.Future[struct{}] {
	if c != nil && plain[T]("AllreduceFunc") != nil {
		return allreduceValues(c, send, recv, op)
	}
	return allreduce(c, "AllreduceFunc", send, recv, byUser(op), funcOp)
}

// ScanFunc is Scan with a function.
func ScanFunc[T any](c *Comm, send, recv []T, op func(a, b T) T) *future.Future[struct{}] {
	if bad := plain[T]("ScanFunc"); bad != nil && c != nil {
		return failed[struct{}](c, bad)
	}
	return scan(c, "ScanFunc", send, recv, byUser(op), funcOp, false)
}

// ExscanFunc is Exscan with a function.
func ExscanFunc[T any](c *Comm, send, recv []T, op func(a, b T) T) *future.Future[struct{}] {
	if bad := plain[T]("ExscanFunc"); bad != nil && c != nil {
		return failed[struct{}](c, bad)
	}
	return scan(c, "ExscanFunc", send, recv, byUser(op), funcOp, true)
}

// ReduceScatterFunc is ReduceScatter with a function.
func ReduceScatterFunc[T any](c *Comm, send, recv []T, counts []int, op func(a, b T) T) *future.Future[struct{}] {
	if bad := plain[T]("ReduceScatterFunc"); bad != nil && c != nil {
		return failed[struct{}](c, bad)
	}
	return reduceScatter(c, "ReduceScatterFunc", send, recv, counts, byUser(op), funcOp)
}

// Gather brings send of all ranks, as long at each, to recv of rank root, by rank
// (MPI_Igather). Elsewhere recv is not used.
func Gather[T Scalar](c *Comm, send, recv []T, root int) *future.Future[struct{}] {
	if c == nil {
		return nowhere[struct{}]("Gather")
	}
	k := check{op: "Gather"}
	k.root(root, c)
	if c.Rank() == root {
		k.length("recv", len(recv), c.Size()*len(send))
	}
	if len(send)*sizeOf[T]() <= treeLimit {
		return c.run("Gather", k.err, &collective.Gather{Send: bytesOf(send), Recv: bytesOf(recv), Root: root}, nil)
	}
	var a collective.Linear
	if k.err == nil {
		a.Send = toOne(c, root, bytesOf(send))
		if c.Rank() == root {
			a.Recv = parts(recv, equal(c, len(send)))
		}
	}
	return c.run("Gather", k.err, &a, nil)
}

// treeLimit is the length in bytes of a rank's part beyond which Gather and
// Scatter send it directly: a tree would copy it once a level.
const treeLimit = 4096

// toOne returns parts of which only that of rank r is not nil.
func toOne(c *Comm, r int, part []byte) [][]byte {
	split := make([][]byte, c.Size())
	split[r] = part
	return split
}

func equal(c *Comm, n int) []int {
	counts := make([]int, c.Size())
	for i := range counts {
		counts[i] = n
	}
	return counts
}

// Gatherv is Gather of counts[r] elements from each rank r (MPI_Igatherv). Only
// the root needs counts and recv.
func Gatherv[T Scalar](c *Comm, send, recv []T, counts []int, root int) *future.Future[struct{}] {
	if c == nil {
		return nowhere[struct{}]("Gatherv")
	}
	k := check{op: "Gatherv"}
	k.root(root, c)
	var a collective.Linear
	if k.err == nil && c.Rank() == root {
		k.counts("recv", counts, len(recv), c)
		if k.err == nil {
			a.Recv = parts(recv, counts)
		}
	}
	if k.err == nil {
		a.Send = toOne(c, root, bytesOf(send))
	}
	return c.run("Gatherv", k.err, &a, nil)
}

// Scatter brings the parts of send of rank root, as long for each, to recv of all
// ranks, by rank (MPI_Iscatter). Elsewhere send is not used.
func Scatter[T Scalar](c *Comm, send, recv []T, root int) *future.Future[struct{}] {
	if c == nil {
		return nowhere[struct{}]("Scatter")
	}
	k := check{op: "Scatter"}
	k.root(root, c)
	if c.Rank() == root {
		k.length("send", len(send), c.Size()*len(recv))
	}
	if len(recv)*sizeOf[T]() <= treeLimit {
		return c.run("Scatter", k.err, &collective.Scatter{Send: bytesOf(send), Recv: bytesOf(recv), Root: root}, nil)
	}
	var a collective.Linear
	if k.err == nil {
		a.Recv = toOne(c, root, bytesOf(recv))
		if c.Rank() == root {
			a.Send = parts(send, equal(c, len(recv)))
		}
	}
	return c.run("Scatter", k.err, &a, nil)
}

// Scatterv is Scatter of counts[r] elements to each rank r (MPI_Iscatterv). Only
// the root needs send and counts.
func Scatterv[T Scalar](c *Comm, send []T, counts []int, recv []T, root int) *future.Future[struct{}] {
	if c == nil {
		return nowhere[struct{}]("Scatterv")
	}
	k := check{op: "Scatterv"}
	k.root(root, c)
	var a collective.Linear
	if k.err == nil && c.Rank() == root {
		k.counts("send", counts, len(send), c)
		if k.err == nil {
			a.Send = parts(send, counts)
		}
	}
	if k.err == nil {
		a.Recv = toOne(c, root, bytesOf(recv))
	}
	return c.run("Scatterv", k.err, &a, nil)
}

// Allgather is Gather that brings the parts to every rank (MPI_Iallgather).
func Allgather[T Scalar](c *Comm, send, recv []T) *future.Future[struct{}] {
	if c == nil {
		return nowhere[struct{}]("Allgather")
	}
	k := check{op: "Allgather"}
	k.length("recv", len(recv), c.Size()*len(send))
	a := &collective.Allgather{Gather: collective.Gather{Send: bytesOf(send), Recv: bytesOf(recv)}}
	return c.run("Allgather", k.err, a, nil)
}

// Allgatherv is Allgather of counts[r] elements from each rank r
// (MPI_Iallgatherv). All ranks give the same counts.
func Allgatherv[T Scalar](c *Comm, send, recv []T, counts []int) *future.Future[struct{}] {
	if c == nil {
		return nowhere[struct{}]("Allgatherv")
	}
	k := check{op: "Allgatherv"}
	k.counts("recv", counts, len(recv), c)
	a := &collective.Allgatherv{Send: bytesOf(send), Recv: bytesOf(recv), At: make([]int, 1, len(counts)+1)}
	for r, n := range counts {
		a.At = append(a.At, a.At[r]+n*sizeOf[T]())
	}
	if k.err == nil {
		k.length("send", len(send), counts[c.Rank()])
	}
	return c.run("Allgatherv", k.err, a, nil)
}

// Alltoall sends the r-th part of send to rank r, as long for each, and receives
// rank r's as the r-th part of recv (MPI_Ialltoall).
func Alltoall[T Scalar](c *Comm, send, recv []T) *future.Future[struct{}] {
	if c == nil {
		return nowhere[struct{}]("Alltoall")
	}
	k := check{op: "Alltoall"}
	k.length("recv", len(recv), len(send))
	k.that(len(send)%c.Size() == 0, ClassCount, "send has %d elements, expected a multiple of the %d ranks", len(send), c.Size())
	if k.err != nil {
		return c.run("Alltoall", k.err, nil, nil)
	}
	counts := equal(c, len(send)/c.Size())
	return c.run("Alltoall", nil, &collective.Linear{Send: parts(send, counts), Recv: parts(recv, counts)}, nil)
}

// Alltoallv is Alltoall of sendCounts[r] elements to, and recvCounts[r] from,
// each rank r (MPI_Ialltoallv).
func Alltoallv[T Scalar](c *Comm, send []T, sendCounts []int, recv []T, recvCounts []int) *future.Future[struct{}] {
	if c == nil {
		return nowhere[struct{}]("Alltoallv")
	}
	k := check{op: "Alltoallv"}
	k.counts("send", sendCounts, len(send), c)
	k.counts("recv", recvCounts, len(recv), c)
	if k.err != nil {
		return c.run("Alltoallv", k.err, nil, nil)
	}
	return c.run("Alltoallv", nil, &collective.Linear{Send: parts(send, sendCounts), Recv: parts(recv, recvCounts)}, nil)
}
