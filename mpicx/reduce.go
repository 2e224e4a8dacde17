package mpicx

import (
	"reflect"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/internal/signature"
)

// Reduce combines send of all ranks, element by element, into recv of rank root (MPI_Ireduce).
// Elsewhere recv is not used. Floating-point sums depend on the order in which ranks are combined. It
// is the same in every run, but may be another with another root, number of ranks, or length.
func Reduce[T Scalar](c *Comm, send, recv []T, op Op, root int) *future.Future[struct{}] {
	return reduce(c, signature.Reduce, send, recv, opFor[T](op), op, root)
}

func reduce[T any](c *Comm, kind signature.Kind, send, recv []T, op reduction, code Op, root int) *future.Future[struct{}] {
	if c == nil {
		return nowhere[struct{}](kind.String())
	}
	k := check{op: kind.String()}
	k.root(root, c)
	defined[T](&k, op, code)
	if c.Rank() == root {
		k.length("recv", len(recv), len(send))
		same(&k, send, recv)
	} else {
		recv = nil
	}
	r := c.newRun()
	v := values(send, recv, op, code)
	return r.start(reducing[T](kind, code, root, len(send)).Word(), k.err, c.chooser.Reduce(&r.kept, &v, root), alone(c.size, code, recv))
}

// reducing returns the call of a reduction.
func reducing[T any](kind signature.Kind, op Op, root, n int) call {
	return call{Kind: kind, Op: int(op), Root: root, Of: elementOf[T](), Count: n}
}

// values returns the data of a reduction for its algorithm. recv is nil at ranks that get no
// result.
func values[T any](send, recv []T, op reduction, code Op) collective.Reduction {
	r := collective.Reduction{Send: bytesOf(send), Op: op, Element: max(1, sizeOf[T]()), Ordered: code == funcOp}
	if recv != nil {
		r.Recv = bytesOf(recv)
	}
	return r
}

// alone returns what remains to be done with a result of the values of n ranks, or nil. A single
// value is copied, but counts as true or false in a logical operation like those of two ranks.
func alone[T any](n int, op Op, result []T) func() {
	if n != 1 || op != LAnd && op != LOr && op != LXor {
		return nil
	}
	b, or := bytesOf(result), reductions[reflect.TypeFor[T]().Kind()][LOr]
	return func() { or(b, b, b) }
}

// Allreduce is Reduce whose result every rank gets, bit by bit the same
// (MPI_Iallreduce).
func Allreduce[T Scalar](c *Comm, send, recv []T, op Op) *future.Future[struct{}] {
	return allreduce(c, signature.Allreduce, send, recv, opFor[T](op), op)
}

func allreduce[T any](c *Comm, kind signature.Kind, send, recv []T, op reduction, code Op) *future.Future[struct{}] {
	if c == nil {
		return nowhere[struct{}](kind.String())
	}
	k := check{op: kind.String()}
	defined[T](&k, op, code)
	k.length("recv", len(recv), len(send))
	same(&k, send, recv)
	r := c.newRun()
	v := values(send, recv, op, code)
	return r.start(reducing[T](kind, code, 0, len(send)).Word(), k.err, c.chooser.Allreduce(&r.kept, &v), alone(c.size, code, recv))
}

// Scan is Reduce whose result at rank r combines send of ranks 0 to r
// (MPI_Iscan).
func Scan[T Scalar](c *Comm, send, recv []T, op Op) *future.Future[struct{}] {
	return scan(c, signature.Scan, send, recv, opFor[T](op), op, false)
}

// Exscan is Scan of ranks 0 to r-1 (MPI_Iexscan). At rank 0 recv is left alone.
func Exscan[T Scalar](c *Comm, send, recv []T, op Op) *future.Future[struct{}] {
	return scan(c, signature.Exscan, send, recv, opFor[T](op), op, true)
}

func scan[T any](c *Comm, kind signature.Kind, send, recv []T, op reduction, code Op, exclusive bool) *future.Future[struct{}] {
	if c == nil {
		return nowhere[struct{}](kind.String())
	}
	k := check{op: kind.String()}
	defined[T](&k, op, code)
	k.length("recv", len(recv), len(send))
	same(&k, send, recv)
	ranks := c.rank // that the result combines
	if !exclusive {
		ranks++
	}
	r := c.newRun()
	v := values(send, recv, op, code)
	return r.start(reducing[T](kind, code, 0, len(send)).Word(), k.err, c.chooser.Scan(&r.kept, &v, exclusive), alone(ranks, code, recv))
}

// ReduceScatter is Reduce whose result is spread: rank r gets counts[r] elements
// of it, behind those of the ranks before (MPI_Ireduce_scatter). Counts are the same at all ranks. In place, recv is the beginning
// of send, as in MPI, or this rank's part of it.
func ReduceScatter[T Scalar](c *Comm, send, recv []T, counts []int, op Op) *future.Future[struct{}] {
	return reduceScatter(c, signature.ReduceScatter, send, recv, counts, opFor[T](op), op)
}

// ReduceScatterBlock is ReduceScatter of as many elements to each rank: recv has the same
// length at all of them, and send is Size times as long (MPI_Ireduce_scatter_block).
func ReduceScatterBlock[T Scalar](c *Comm, send, recv []T, op Op) *future.Future[struct{}] {
	return reduceScatterBlock(c, signature.ReduceScatterBlock, send, recv, opFor[T](op), op)
}

func reduceScatterBlock[T any](c *Comm, kind signature.Kind, send, recv []T, op reduction, code Op) *future.Future[struct{}] {
	if c == nil {
		return nowhere[struct{}](kind.String())
	}
	k := check{op: kind.String()}
	k.length("send", len(send), c.size*len(recv))
	if k.err != nil {
		return c.run(call{Kind: kind}, k.err, nil, nil)
	}
	return reduceScatter(c, kind, send, recv, equal(c, len(recv)), op, code)
}

func reduceScatter[T any](c *Comm, kind signature.Kind, send, recv []T, counts []int, op reduction, code Op) *future.Future[struct{}] {
	if c == nil {
		return nowhere[struct{}](kind.String())
	}
	k := check{op: kind.String()}
	defined[T](&k, op, code)
	k.counts("recv", counts, len(send), c)
	if k.err == nil {
		k.length("recv", len(recv), counts[c.rank])
		inPlace(&k, "recv", recv, "send", send, 0, before(counts, c.rank))
	}
	what := reducing[T](kind, code, 0, len(send))
	if k.err != nil {
		return c.run(what, k.err, nil, nil)
	}
	r := c.newRun()
	v, parts := values(send, recv, op, code), partsOf[T](&r.kept, counts)
	what.Root = parts.Digest()
	return r.start(what.Word(), nil, c.chooser.ReduceScatter(&r.kept, &v, parts), alone(c.size, code, recv))
}

// ReduceFunc is Reduce with a function instead of an Op, as the other operations with Func or Value in their
// names. The function must be associative. It is applied in the order of ranks, so it need not commute. T must
// be free of pointers.
//
// The function is called on a goroutine of its own. A panic in it, or an error that it throws, comes out of
// Wait at its rank. If it calls [runtime.Goexit], the reduction ends with ErrGoexit there. It must not block:
// its rank is told of an error only when it has returned, because its buffers are in use until then. If it
// waits for an operation, or begins a collective one, the reduction ends at its rank with an *MPIError. Signal
// ends it in the same way, after the error has been raised. All this is also true of goroutines that the
// function starts: there such a call panics. A function that calls [runtime.LockOSThread] must unlock the
// thread again.
func ReduceFunc[T any](c *Comm, send, recv []T, op func(a, b T) T, root int) *future.Future[struct{}] {
	if bad := plain[T]("ReduceFunc"); bad != nil && c != nil {
		return failed[struct{}](c, bad)
	}
	return reduce(c, signature.ReduceFunc, send, recv, byUser(op), funcOp, root)
}

// AllreduceFunc is Allreduce with a function.
func AllreduceFunc[T any](c *Comm, send, recv []T, op func(a, b T) T) *future.Future[struct{}] {
	if c != nil && plain[T]("AllreduceFunc") != nil {
		return allreduceValues(c, send, recv, op)
	}
	return allreduce(c, signature.AllreduceFunc, send, recv, byUser(op), funcOp)
}

// allreduceValues is AllreduceFunc on types that have pointers: every rank gets
// all values and combines them, in the order of ranks.
func allreduceValues[T any](c *Comm, send, recv []T, op func(a, b T) T) *future.Future[struct{}] {
	const name = "AllreduceFunc"
	k := check{op: name}
	k.length("recv", len(recv), len(send))
	same(&k, send, recv)
	defined[T](&k, byUser(op), funcOp)
	a := &collective.AllgatherAny{}
	if k.err == nil {
		a.Send, k.err = encodeValue(name, send)
	}
	return runValue(c, reducing[T](signature.AllreduceFunc, funcOp, 0, len(send)), k.err, a, func() (struct{}, error) {
		all, err := decodeValues[[]T](name, a.Parts)
		for r, vs := range all {
			if len(vs) != len(recv) {
				return struct{}{}, mpiErrorf(name, ClassCount, "rank %d gave %d elements, expected %d", r, len(vs), len(recv))
			}
		}
		callUser(func() {
			for r, vs := range all {
				for i, v := range vs {
					if r > 0 {
						v = op(recv[i], v)
					}
					recv[i] = v
				}
			}
		})
		return struct{}{}, err
	})
}

// ScanFunc is Scan with a function.
func ScanFunc[T any](c *Comm, send, recv []T, op func(a, b T) T) *future.Future[struct{}] {
	if bad := plain[T]("ScanFunc"); bad != nil && c != nil {
		return failed[struct{}](c, bad)
	}
	return scan(c, signature.ScanFunc, send, recv, byUser(op), funcOp, false)
}

// ExscanFunc is Exscan with a function.
func ExscanFunc[T any](c *Comm, send, recv []T, op func(a, b T) T) *future.Future[struct{}] {
	if bad := plain[T]("ExscanFunc"); bad != nil && c != nil {
		return failed[struct{}](c, bad)
	}
	return scan(c, signature.ExscanFunc, send, recv, byUser(op), funcOp, true)
}

// ReduceScatterFunc is ReduceScatter with a function.
func ReduceScatterFunc[T any](c *Comm, send, recv []T, counts []int, op func(a, b T) T) *future.Future[struct{}] {
	if bad := plain[T]("ReduceScatterFunc"); bad != nil && c != nil {
		return failed[struct{}](c, bad)
	}
	return reduceScatter(c, signature.ReduceScatterFunc, send, recv, counts, byUser(op), funcOp)
}

// ReduceScatterBlockFunc is ReduceScatterBlock with a function.
func ReduceScatterBlockFunc[T any](c *Comm, send, recv []T, op func(a, b T) T) *future.Future[struct{}] {
	if bad := plain[T]("ReduceScatterBlockFunc"); bad != nil && c != nil {
		return failed[struct{}](c, bad)
	}
	return reduceScatterBlock(c, signature.ReduceScatterBlockFunc, send, recv, byUser(op), funcOp)
}
