package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/blackchannel"
	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// joiner is a client that joins at once.
type joiner struct {
	*blackchannel.Channel
	verdicts []*errchan.Verdict
}

func (j *joiner) Noticed(round uint64, _ int, _ bool) { j.Join(round, nil) }
func (j *joiner) Resolved(v *errchan.Verdict)         { j.verdicts = append(j.verdicts, v) }

// The black channel ends its rounds with the same verdicts at all ranks.
func TestBlackChannel(t *testing.T) {
	for _, n := range []int{2, 3, 8, 100} {
		for _, model := range []Model{cluster, wild} {
			for seed := range uint64(5) {
				t.Run(fmt.Sprintf("%d ranks, %v, seed %d", n, model, seed), func(t *testing.T) {
					w := New(Config{Ranks: n, Seed: seed, Model: model})
					clients := make([]joiner, n)
					for r := range n {
						w.At(time.Duration(r), r, func() {
							c, err := w.Comm(r).Sub(transport.Name{Seq: 1}, nil)
							require.NoError(t, err)
							clients[r].Channel = blackchannel.New(c, 0, nil, &clients[r])
							clients[r].Listen()
						})
					}
					raised := 0
					for r := 0; r < n; r += 1 + n/5 {
						raised++
						w.At(time.Duration(w.rng.IntN(100000)), r, func() { clients[r].Raise(fmt.Appendf(nil, "of %d", r), false, nil) })
					}
					require.NoError(t, w.Run())
					reports := 0
					for _, v := range clients[0].verdicts {
						reports += len(v.Reports)
					}
					require.Equal(t, raised, reports)
					for r := range n {
						require.Equal(t, clients[0].verdicts, clients[r].verdicts, "rank %d", r)
						require.Empty(t, clients[r].Waiting())
						require.Empty(t, transport.Pending(w.comm.subOf(r)))
						require.NoError(t, clients[r].Close())
					}
				})
			}
		}
	}
}

// subOf returns the side that a rank made last.
func (c *communicator) subOf(rank int) transport.Comm {
	sides := c.sides[rank].p.sides
	return sides[len(sides)-1]
}
