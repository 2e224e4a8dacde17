package mpicx

import (
	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/collective"
)

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

// allreduceValues is AllreduceFunc on types that have pointers: every rank gets
// all values and combines them, in the order of ranks.
func allreduceValues[T any](c *Comm, send, recv []T, op func(a, b T) T) *future.Future[struct{}] {
	const name = "AllreduceFunc"
	k := check{op: name}
	k.length("recv", len(recv), len(send))
	defined[T](&k, byUser(op), funcOp)
	a := &collective.AllgatherAny{}
	if k.err == nil {
		a.Send, k.err = encodeValue(name, send)
	}
	return runValue(c, name, k.err, a, func() (struct{}, error) {
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
