package checkpoint

import (
	"github.com/klauspost/reedsolomon"

	"github.com/mpicx/go-mpicx/internal/collective"
)

// spreading is the exchange in which each rank sends its chunks to the holders of their parities,
// and computes the parities that it holds. Step i sends chunk i of all ranks.
type spreading struct {
	group
	position int
	rows     []reedsolomon.Encoder // by parity; not used for copies
	blob     *blob
	arriving [][]byte
	sent     int64
}

var _ collective.Algorithm = (*spreading)(nil)

func (a *spreading) Step(i int, x *collective.Exchange) (more bool) {
	b, n := a.blob, a.blob.chunk
	if a.arriving == nil {
		a.arriving = b.shards // the copies arrive in place
		if a.k > 1 {
			a.arriving = make([][]byte, a.m)
			for j := range a.arriving {
				a.arriving[j] = make([]byte, n)
				clear(b.shards[j])
			}
		}
	}
	if i > 0 && a.k > 1 {
		for j, row := range a.rows {
			if err := row.EncodeIdx(a.arriving[j], i-1, b.shards[j:j+1]); err != nil {
				panic(err) // the lengths are right by construction
			}
		}
	}
	if i == a.k {
		a.arriving = nil
		return false
	}
	stripe := a.stripeOf(a.position, i)
	for j := range a.m {
		x.Send(a.members[a.holder(stripe, a.k+j)], b.data[i*n:][:n])
		x.Recv(a.members[a.holder(a.at(a.position-j), i)], a.arriving[j])
		a.sent += int64(n)
	}
	return true
}
