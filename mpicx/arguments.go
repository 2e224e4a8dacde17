package mpicx

import (
	"math"
)

// check returns an error for the first bad argument.
type check struct {
	op  string
	err error
}

// checkOf checks the elements of an operation's buffers first.
func checkOf[T any](op string) check { return check{op: op, err: element[T](op)} }

// that has its arguments allocated, whether or not it is ok.
func (k *check) that(ok bool, class Class, format string, args ...any) {
	if !ok && k.err == nil {
		k.err = mpiErrorf(k.op, class, format, args...)
	}
}

func (k *check) root(root int, c *Comm) {
	if root < 0 || root >= c.size {
		k.that(false, ClassRoot, "root %d of %s, expected 0 to %d", root, c.name, c.size-1)
	}
}

func (k *check) length(what string, got, want int) {
	if got != want {
		k.that(false, ClassBuffer, "%s has %d elements, expected %d", what, got, want)
	}
}

// counts checks one count for each rank, against the length of the buffer for all of them.
func (k *check) counts(what string, counts []int, buffer int, c *Comm) {
	k.countsOf(what, counts, buffer, c.Size(), "rank")
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

// funcOp stands for a reduction by a function.
const funcOp Op = -1

func defined[T any](k *check, op reduction, code Op) {
	if op == nil && code == funcOp {
		k.that(false, ClassOp, "nil function, expected one that combines two elements of type %T", *new(T))
	} else if op == nil {
		k.that(false, ClassOp, "%v is not defined on %T", code, *new(T))
	}
}

// checkPoint checks the arguments of a point-to-point operation. least is AnySource if that is
// allowed.
func (c *Comm) checkPoint(op string, peer, tag, least int) error {
	anySource, anyTag := "", ""
	if least == AnySource {
		anySource, anyTag = ", AnySource", " or AnyTag"
	}
	if (peer < least || peer >= c.Size()) && peer != ProcNull {
		return mpiErrorf(op, ClassRank, "rank %d of %s, expected 0 to %d%s or ProcNull", peer, c.name, c.Size()-1, anySource)
	}
	if tag < 0 && (tag != AnyTag || anyTag == "") {
		return mpiErrorf(op, ClassTag, "tag %d, expected 0 or more%s", tag, anyTag)
	}
	return nil
}
