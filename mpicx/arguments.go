package mpicx

import (
	"math"
)

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

// funcOp is the name of an operation that is a function.
const funcOp = "op"

func defined[T any](k *check, op reduction, name string) {
	if op == nil && name == funcOp {
		k.that(false, ClassOp, "nil function, expected one that combines two elements of type %T", *new(T))
	} else if op == nil {
		k.that(false, ClassOp, "%s is not defined on %T", name, *new(T))
	}
}

// checkPoint checks the arguments; least is AnySource where that is allowed.
func (c *Comm) checkPoint(op string, peer, tag, least int) error {
	anySource, anyTag := "", ""
	if least == AnySource {
		anySource, anyTag = " or AnySource", " or AnyTag"
	}
	if peer < least || peer >= c.Size() {
		return mpiErrorf(op, ClassRank, "rank %d of %s, expected 0 to %d%s", peer, c.name, c.Size()-1, anySource)
	}
	if tag < 0 && (tag != AnyTag || anyTag == "") {
		return mpiErrorf(op, ClassTag, "tag %d, expected 0 or more%s", tag, anyTag)
	}
	return nil
}
