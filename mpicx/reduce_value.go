package mpicx

import (
	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/internal/signature"
)

// Reductions of one value of each rank. The rules of ReduceFunc apply to them
// too, but T may be any type: values that have pointers are sent by encoding/gob to every rank
// that needs them.

// AllreduceValue combines v of all ranks, in the order of ranks, and returns the result at
// every rank. Of a type without pointers it is bit by bit the same. Op is a function, such as
// func(a, b int) int { return a + b }; [Allreduce] takes an [Op].
func AllreduceValue[T any](c *Comm, v T, op func(a, b T) T) *future.Future[T] {
	if c == nil {
		return nowhere[T]("AllreduceValue")
	}
	return reduceValue(c, call{Kind: signature.AllreduceValue}, v, op, c.size, func(r collective.Reduction) collective.Algorithm {
		return c.chooser.Allreduce(nil, &r)
	})
}

// ReduceValue is AllreduceValue whose result only rank root gets. The others get the zero
// value.
func ReduceValue[T any](c *Comm, v T, op func(a, b T) T, root int) *future.Future[T] {
	if c == nil {
		return nowhere[T]("ReduceValue")
	}
	ranks := 0
	if c.rank == root {
		ranks = c.size
	}
	return reduceValue(c, call{Kind: signature.ReduceValue, Root: root}, v, op, ranks, func(r collective.Reduction) collective.Algorithm {
		return c.chooser.Reduce(nil, &r, root)
	})
}

// ScanValue combines v of ranks 0 to this one.
func ScanValue[T any](c *Comm, v T, op func(a, b T) T) *future.Future[T] {
	if c == nil {
		return nowhere[T]("ScanValue")
	}
	return reduceValue(c, call{Kind: signature.ScanValue}, v, op, c.rank+1, func(r collective.Reduction) collective.Algorithm {
		return c.chooser.Scan(nil, &r, false)
	})
}

// ExscanValue combines v of the ranks before this one. Rank 0 gets the zero value.
func ExscanValue[T any](c *Comm, v T, op func(a, b T) T) *future.Future[T] {
	if c == nil {
		return nowhere[T]("ExscanValue")
	}
	return reduceValue(c, call{Kind: signature.ExscanValue}, v, op, c.rank, func(r collective.Reduction) collective.Algorithm {
		return c.chooser.Scan(nil, &r, true)
	})
}

// reduceValue starts a reduction whose result at this rank combines the values of ranks 0 to
// ranks-1; if ranks is 0 it is the zero value. Values that have pointers are gathered at the
// root, or at every rank if the reduction has no root.
func reduceValue[T any](c *Comm, what call, v T, op func(a, b T) T, ranks int, algorithm func(collective.Reduction) collective.Algorithm) *future.Future[T] {
	k := check{op: what.Kind.String()}
	if what.Kind == signature.ReduceValue {
		k.root(what.Root, c)
	}
	apply := byUser(op)
	defined[T](&k, apply, funcOp)
	if plain[T](k.op) != nil {
		return combineValues(c, what, k, v, op, ranks)
	}
	what.Of = elementOf[T]()
	b := &[2]T{v} // and the result
	a := algorithm(values(b[:1], b[1:], apply, funcOp))
	return runValue(c, what, k.err, a, func() (result T, _ error) {
		if ranks > 0 {
			result = b[1]
		}
		return result, nil
	})
}

func combineValues[T any](c *Comm, what call, k check, v T, op func(a, b T) T, ranks int) *future.Future[T] {
	what.Of = signature.Value
	all := &collective.AllgatherAny{GatherAny: collective.GatherAny{Root: what.Root}}
	var a collective.Algorithm = all
	if what.Kind == signature.ReduceValue {
		a = &all.GatherAny
	}
	if k.err == nil {
		all.Send, k.err = encodeValue(k.op, v)
	}
	return runValue(c, what, k.err, a, func() (result T, _ error) {
		if ranks == 0 {
			return result, nil
		}
		values, err := decodeValues[T](k.op, all.Parts[:ranks])
		if err != nil {
			return result, err
		}
		callUser(func() {
			result = values[0]
			for _, v := range values[1:] {
				result = op(result, v)
			}
		})
		return result, nil
	})
}
