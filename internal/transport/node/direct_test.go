package node

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// Random programs end alike whether a receive may take its message from the ring or not: Irecv has
// the message pass the queues.
func TestDirect(t *testing.T) {
	direct := 0
	for seed := range uint64(3000) {
		run := func(begin func(*comm, *transport.Request) bool) (log []string) {
			random := rand.New(rand.NewPCG(seed, 1))
			c, _ := pair(seed%2 == 0)
			listen(c[1])
			requests, dying := []*request(nil), false
			for range 30 {
				buf := make([]byte, 1+random.IntN(2))
				r := &request{Request: transport.Request{Buf: buf, Peer: 0, Tag: random.IntN(2), Epoch: c[1].Epoch(), Signature: signature.Word(random.IntN(2))}, done: make(chan struct{})}
				r.Done = r
				sent := transport.Request{Buf: []byte{byte(random.Int()), 2}[:1+random.IntN(2)], Peer: 1, Tag: random.IntN(2), Epoch: c[0].Epoch(), Signature: signature.Word(random.IntN(2)), Done: new(request)}
				switch k := random.IntN(60); {
				case k < 25 && c[0].TrySend(1, sent.Tag, sent.Epoch, sent.Signature, sent.Buf):
				case k < 28:
					c[0].Isend(new(transport.Request{Buf: sent.Buf, Peer: 1, Tag: 1, Mode: transport.Synchronous, Epoch: sent.Epoch, Done: &request{done: make(chan struct{})}}))
				case k < 50:
					requests = append(requests, r)
					if begin(c[1], &r.Request) {
						close(r.done)
					}
				case k < 53:
					c[0].tell(1, []byte("n"))
				case k < 55 && !dying: // Advance waits for bytes under way
					settle(c[:]...)
					c[random.IntN(2)].Advance(0, errors.New("over"))
				case k == 55:
					c[1].Lose(0)
				case k < 58:
					c[1].liveness.expired, c[1].e.dead[0], dying = k == 56, k == 57, true
				case k == 58 && !dying:
					settle(c[:]...)
					c[1].Revoke(errors.New("revoked"))
				default:
					settle(c[:]...)
				}
			}
			settle(c[:]...)
			for i, r := range requests {
				log = append(log, fmt.Sprint(i, r.ended(), r.Err, r.Status, string(r.Buf)))
			}
			return append(log, fmt.Sprint(c[1].e.leads[0].received, c[1].Kept()))
		}
		taken := run(func(c *comm, r *transport.Request) (received bool) {
			if received = c.TryRecv(r); received {
				direct++
			}
			return received
		})
		require.Equal(t, run(func(c *comm, r *transport.Request) bool { c.Irecv(r); return false }), taken, "seed %d", seed)
	}
	require.Greater(t, direct, 3000)
}
