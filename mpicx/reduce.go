package mpicx

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/internal/element"
	"github.com/mpicx/go-mpicx/internal/signature"
)

// A Scalar is an element type of buffers: fixed in size and free of pointers.
type Scalar interface {
	~bool | ~int | ~int8 | ~int16 | ~int32 | ~int64 |
		~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 |
		~float32 | ~float64 | ~complex64 | ~complex128
}

// An Op combines two values into one (MPI_Op). Reductions apply it element by element.
type Op int

// The predefined operations (MPI_SUM and so on). Sum and Prod apply to numbers, Max and Min to
// integers and floats, BAnd, BOr and BXor to integers and bools. LAnd, LOr and LXor apply to
// every Scalar: zero and false count as false, and the result is 1 or true, or zero or false.
const (
	Sum  Op = signature.Sum
	Prod Op = signature.Prod
	Max  Op = signature.Max
	Min  Op = signature.Min
	LAnd Op = signature.LAnd
	BAnd Op = signature.BAnd
	LOr  Op = signature.LOr
	BOr  Op = signature.BOr
	LXor Op = signature.LXor
	BXor Op = signature.BXor
)

func (op Op) String() string {
	if op < 0 || int(op) >= len(signature.Ops) {
		return fmt.Sprintf("Op(%d)", int(op))
	}
	return signature.Ops[op]
}

// A Loc is a value and its location: its rank, or its index in data that the ranks share.
// MinLoc and MaxLoc combine Locs:
//
//	least, err := mpicx.AllreduceValue(c, mpicx.Loc[float64]{Value: x, Index: c.Rank()}, mpicx.MinLoc).Get(ctx)
type Loc[T cmp.Ordered] struct {
	Value T
	Index int
}

// MinLoc returns the smaller value with its index, and of two equal values the one with the
// lower index (MPI_MINLOC). If a value is NaN, the result is NaN, as with Min.
func MinLoc[T cmp.Ordered](a, b Loc[T]) Loc[T] { return better(a, b, a.Value < b.Value) }

// MaxLoc is MinLoc for the larger value (MPI_MAXLOC).
func MaxLoc[T cmp.Ordered](a, b Loc[T]) Loc[T] { return better(a, b, a.Value > b.Value) }

// better returns the better of a and b: the one that isFirst, or that is a NaN. If both or neither
// are, it returns the one with the lower index.
func better[T cmp.Ordered](a, b Loc[T], isFirst bool) Loc[T] {
	aNaN, bNaN := a.Value != a.Value, b.Value != b.Value
	switch tie := a.Value == b.Value || aNaN && bNaN; {
	case tie && a.Index <= b.Index, !tie && (aNaN || isFirst && !bNaN):
		return a
	}
	return b
}

// A reduction is what combines two buffers: an Op, or a user's function.
type reduction struct {
	kernel element.Kernel // nil: the Op is not defined, or the function is nil
	code   Op             // funcOp for a function
}

const funcOp Op = -1

func predefined[T Scalar](op Op) reduction { return reduction{element.Predefined[T](int(op)), op} }

func byUser[T any](op func(a, b T) T) reduction { return reduction{element.Func(op), funcOp} }

// Reduce combines send of all ranks, element by element, into recv of rank root (MPI_Ireduce).
// Elsewhere recv is not used. Floating-point sums depend on the order in which ranks are combined.
// It is the same in every run, but may be another with another root, number of ranks, or length.
// Package exact has sums that do not depend on it.
func Reduce[T Scalar](c *Comm, send, recv []T, op Op, root int) *future.Future[struct{}] {
	return reduce(c.of(), signature.Reduce, send, recv, predefined[T](op), root)
}

func reduce[T any](c *comm, kind signature.Kind, send, recv []T, op reduction, root int) *future.Future[struct{}] {
	return c.start(reducing[T](kind, op.code, root, len(send)), unfit[T](op), func(r *collectiveRun) collective.Algorithm {
		defined[T](&r.check, op)
		r.root(root, c)
		if c.rank == root {
			fill(r, send, recv)
		} else {
			recv = nil
		}
		r.finish = alone(c.size, op.code, recv)
		v := values(send, recv, op)
		return c.chooser.Reduce(&r.kept, &v, root)
	})
}

// unfit returns why elements of type T can't be those of a reduction, or nil.
func unfit[T any](op reduction) error {
	if op.code == funcOp {
		return element.TypeOf[T]().Pointers
	}
	return nil
}

// fill checks the buffers of a rank that gets the result.
func fill[T any](r *collectiveRun, send, recv []T) {
	r.length("recv", len(recv), len(send))
	same(&r.check, send, recv)
}

// defined checks that an operation is defined on T.
func defined[T any](k *check, op reduction) {
	if op.kernel == nil && op.code == funcOp {
		k.that(false, ClassOp, "nil function, expected one that combines two elements of type %T", *new(T))
	} else if op.kernel == nil {
		k.that(false, ClassOp, "%v is not defined on %T", op.code, *new(T))
	}
}

// reducing returns the call of a reduction.
func reducing[T any](kind signature.Kind, op Op, root, n int) call {
	what, _ := ofElements[T](call{Kind: kind, Op: int(op), Root: root, Count: n})
	return what
}

// values returns the data of a reduction for its algorithm. recv is nil at ranks that get no
// result.
func values[T any](send, recv []T, op reduction) collective.Reduction {
	r := collective.Reduction{Send: element.Bytes(send), Op: op.kernel, Element: max(1, element.Size[T]()), Ordered: op.code == funcOp, Folds: op.code == funcOp}
	if recv != nil {
		r.Recv = element.Bytes(recv)
	}
	return r
}

// alone returns what remains to be done with a result of the values of n ranks, or nil. A single
// value is copied, but counts as true or false in a logical operation like those of two ranks.
func alone[T any](n int, op Op, result []T) func() {
	if n != 1 || op != LAnd && op != LOr && op != LXor {
		return nil
	}
	b, or := element.Bytes(result), element.Predefined[T](int(LOr))
	return func() { or(b, b, b) }
}

// Allreduce is Reduce whose result every rank gets, bit by bit the same
// (MPI_Iallreduce).
func Allreduce[T Scalar](c *Comm, send, recv []T, op Op) *future.Future[struct{}] {
	return allreduce(c.of(), signature.Allreduce, send, recv, predefined[T](op))
}

func allreduce[T any](c *comm, kind signature.Kind, send, recv []T, op reduction) *future.Future[struct{}] {
	return c.start(reducing[T](kind, op.code, 0, len(send)), unfit[T](op), func(r *collectiveRun) collective.Algorithm {
		defined[T](&r.check, op)
		fill(r, send, recv)
		r.finish = alone(c.size, op.code, recv)
		v := values(send, recv, op)
		return c.chooser.Allreduce(&r.kept, &v)
	})
}

// Scan is Reduce whose result at rank r combines send of ranks 0 to r
// (MPI_Iscan).
func Scan[T Scalar](c *Comm, send, recv []T, op Op) *future.Future[struct{}] {
	return scan(c.of(), signature.Scan, send, recv, predefined[T](op), false)
}

// Exscan is Scan of ranks 0 to r-1 (MPI_Iexscan). At rank 0 recv is left alone.
func Exscan[T Scalar](c *Comm, send, recv []T, op Op) *future.Future[struct{}] {
	return scan(c.of(), signature.Exscan, send, recv, predefined[T](op), true)
}

func scan[T any](c *comm, kind signature.Kind, send, recv []T, op reduction, exclusive bool) *future.Future[struct{}] {
	return c.start(reducing[T](kind, op.code, 0, len(send)), unfit[T](op), func(r *collectiveRun) collective.Algorithm {
		defined[T](&r.check, op)
		fill(r, send, recv)
		ranks := c.rank // that the result combines
		if !exclusive {
			ranks++
		}
		r.finish = alone(ranks, op.code, recv)
		v := values(send, recv, op)
		return c.chooser.Scan(&r.kept, &v, exclusive)
	})
}

// ReduceScatter is Reduce whose result is spread: rank r gets counts[r] elements of it, behind
// those of the ranks before (MPI_Ireduce_scatter). Counts are the same at all ranks. In place, recv
// is the beginning of send, as in MPI, or this rank's part of it.
func ReduceScatter[T Scalar](c *Comm, send, recv []T, counts []int, op Op) *future.Future[struct{}] {
	return reduceScatter(c.of(), signature.ReduceScatter, send, recv, counts, predefined[T](op))
}

// ReduceScatterBlock is ReduceScatter of as many elements to each rank: recv has the same
// length at all of them, and send is Size times as long (MPI_Ireduce_scatter_block).
func ReduceScatterBlock[T Scalar](c *Comm, send, recv []T, op Op) *future.Future[struct{}] {
	return reduceScatter(c.of(), signature.ReduceScatterBlock, send, recv, nil, predefined[T](op))
}

func reduceScatter[T any](c *comm, kind signature.Kind, send, recv []T, counts []int, op reduction) *future.Future[struct{}] {
	return c.start(reducing[T](kind, op.code, 0, len(send)), unfit[T](op), func(r *collectiveRun) collective.Algorithm {
		defined[T](&r.check, op)
		if kind == signature.ReduceScatterBlock || kind == signature.ReduceScatterBlockFunc {
			r.length("send", len(send), c.size*len(recv))
			counts = slices.Repeat([]int{len(recv)}, c.size)
		}
		r.counts("recv", counts, len(send), c)
		if r.err == nil {
			r.length("recv", len(recv), counts[c.rank])
			inPlace(&r.check, "recv", recv, "send", send, 0, before(counts, c.rank))
		}
		if r.err != nil {
			return nil
		}
		r.finish = alone(c.size, op.code, recv)
		v := values(send, recv, op)
		return c.chooser.ReduceScatter(&r.kept, &v, partsOf[T](r, counts))
	})
}

// ReduceFunc is Reduce with a function instead of an Op, as the other operations with Func or Value
// in their names. The function must be associative. It is applied in the order of ranks, so it need
// not commute. T must be free of pointers.
//
// The function is called on a goroutine of its own, at any time until the reduction is done. It
// must not
//   - block: its rank is told of an error only when it has returned, because its buffers are in use
//     until then;
//   - wait for an operation, or begin a collective one: the reduction then ends at its rank with an
//     *MPIError. Signal ends it in the same way, after the error has been raised. A goroutine that
//     the function starts panics there;
//   - call [runtime.Goexit], as t.FailNow does: the reduction then ends at its rank with ErrGoexit;
//   - keep its goroutine on a thread: what calls [runtime.LockOSThread] must unlock it again.
//
// A panic in the function, or an error that it throws, comes out of Wait at its rank.
func ReduceFunc[T any](c *Comm, send, recv []T, op func(a, b T) T, root int) *future.Future[struct{}] {
	return reduce(c.of(), signature.ReduceFunc, send, recv, byUser(op), root)
}

// AllreduceFunc is Allreduce with a function.
func AllreduceFunc[T any](c *Comm, send, recv []T, op func(a, b T) T) *future.Future[struct{}] {
	if c != nil && element.TypeOf[T]().Pointers != nil {
		return allreduceValues(c.of(), send, recv, op)
	}
	return allreduce(c.of(), signature.AllreduceFunc, send, recv, byUser(op))
}

// allreduceValues is AllreduceFunc on types that have pointers: every rank gets
// all values and combines them, in the order of ranks.
func allreduceValues[T any](c *comm, send, recv []T, op func(a, b T) T) *future.Future[struct{}] {
	const name = "AllreduceFunc"
	k := check{op: name}
	k.length("recv", len(recv), len(send))
	same(&k, send, recv)
	defined[T](&k, byUser(op))
	a := &collective.AllgatherAny{}
	a.Send = encoded(&k, send)
	return runValue(c, reducing[T](signature.AllreduceFunc, funcOp, 0, len(send)), k.err, a, func() (struct{}, error) {
		all, err := element.DecodeAll[[]T](a.Parts)
		for r, vs := range all {
			if len(vs) != len(recv) {
				return struct{}{}, mpiErrorf(name, ClassCount, "rank %d gave %d elements, expected %d", r, len(vs), len(recv))
			}
		}
		element.Call(func() {
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
	return scan(c.of(), signature.ScanFunc, send, recv, byUser(op), false)
}

// ExscanFunc is Exscan with a function.
func ExscanFunc[T any](c *Comm, send, recv []T, op func(a, b T) T) *future.Future[struct{}] {
	return scan(c.of(), signature.ExscanFunc, send, recv, byUser(op), true)
}

// ReduceScatterFunc is ReduceScatter with a function.
func ReduceScatterFunc[T any](c *Comm, send, recv []T, counts []int, op func(a, b T) T) *future.Future[struct{}] {
	return reduceScatter(c.of(), signature.ReduceScatterFunc, send, recv, counts, byUser(op))
}

// ReduceScatterBlockFunc is ReduceScatterBlock with a function.
func ReduceScatterBlockFunc[T any](c *Comm, send, recv []T, op func(a, b T) T) *future.Future[struct{}] {
	return reduceScatter(c.of(), signature.ReduceScatterBlockFunc, send, recv, nil, byUser(op))
}
