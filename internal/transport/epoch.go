package transport

// An Epoch tells the messages before an error from those after it. It counts
// the errors resolved on a communicator and, each on its own, on those it is
// derived from (design rule D1): two ranks may learn of errors of parent and
// child in different orders, so one sum would not tell the orders apart.
//
// The root's count is in the lowest byte, its child's in the next, and so on;
// from the eighth generation on, counts share the last byte. Counts wrap: no
// two ranks are ever more than one error apart, because resolving one needs all.
type Epoch uint64

const generations = 8

// Next is the epoch after an error of the communicator of the given generation
// (0: no parent), for that communicator and all derived from it.
func (e Epoch) Next(generation int) Epoch {
	shift := 8 * min(generation, generations-1)
	count := byte(e>>shift) + 1
	return e&^(0xff<<shift) | Epoch(count)<<shift
}

// Stale says whether messages of epoch e can never be received in epoch f or
// after it: some error that f knows came after e.
func (e Epoch) Stale(f Epoch) bool {
	for ; e != f; e, f = e>>8, f>>8 {
		if int8(byte(e)-byte(f)) < 0 {
			return true
		}
	}
	return false
}

// Counts are those of an Epoch that do not wrap.
type Counts [generations]uint64

// Next counts an error of the communicator of the given generation.
func (c *Counts) Next(generation int) { c[min(generation, generations-1)]++ }

// At returns the counts in epoch e, which is not far from that of c.
func (c Counts) At(e Epoch) Counts {
	for i := range c {
		c[i] += uint64(int8(byte(e>>(8*i)) - byte(c[i])))
	}
	return c
}
