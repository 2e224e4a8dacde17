package checkpoint

import (
	"github.com/klauspost/reedsolomon"

	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/internal/hook"
)

// exchange carries out the next exchange of op. It waits without a context. The transport ends
// exchanges after an error, also those that begin later. The channel has room for the result,
// because then must not block.
func exchange(op hook.Background, a collective.Algorithm) error {
	ended := make(chan error, 1)
	op.Exchange(a, func(err error) { ended <- err })
	return <-ended
}

// spreading is the exchange in which each rank sends its chunks to the holders of their parities,
// and computes the parities that it holds. Step i sends chunk i of all ranks. It belongs to one
// exchange of a protection, and to whichever goroutine carries out the step. Each step begins when
// all messages of the step before have ended, so what arrives can be used at once.
type spreading struct {
	group
	position int
	keeps    []bool                // by position: the member has its shards already
	rows     []reedsolomon.Encoder // by parity; not used for copies
	blob     *blob
	// Chunks that arrive, by parity. For k = 1 they are the shards themselves. Else each is
	// multiplied and added to its shard, so a rank needs memory for m chunks more during a Save,
	// not for k m.
	arriving [][]byte
	sent     int64
}

var _ collective.Algorithm = (*spreading)(nil)

// Step has a rank send its chunk in step i to the members that are i+1 to i+m positions before it,
// and get theirs from the members that are as far behind it. All ranks take k steps, because all
// groups have the same scheme.
func (a *spreading) Step(i int, x *collective.Exchange) (more bool) {
	b, n := a.blob, a.blob.chunk
	adds := a.k > 1 && !a.keeps[a.position]
	if a.arriving == nil {
		a.arriving = b.shards // the copies arrive in place
		if adds {
			a.arriving = make([][]byte, a.m)
			for j := range a.arriving {
				a.arriving[j] = make([]byte, n)
				clear(b.shards[j])
			}
		}
	}
	if i > 0 && adds {
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
		if to := a.holder(stripe, a.k+j); !a.keeps[to] {
			x.Send(a.members[to], b.data[i*n:][:n])
			a.sent += int64(n)
		}
		if !a.keeps[a.position] {
			x.Recv(a.members[a.holder(a.at(a.position-j), i)], a.arriving[j])
		}
	}
	return true
}
