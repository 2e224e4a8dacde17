package local

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/transporttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestConformance runs the suite in synctest bubbles. The package promises that every blocked
// rank counts as blocked there, and a test that hangs fails at once.
func TestConformance(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5, 8} {
		if testing.Short() && n > 3 {
			break
		}
		t.Run(fmt.Sprintf("%d ranks", n), func(t *testing.T) {
			transporttest.Run(t, func(t *testing.T, body func(*testing.T, transport.Comm)) {
				synctest.Test(t, func(t *testing.T) { run(t, n, body) })
			})
		})
	}
}

// run calls body at n ranks.
func run(t *testing.T, n int, body func(*testing.T, transport.Comm)) {
	var ranks sync.WaitGroup
	start := New
	if n == 3 {
		start = NewMortal // the same while no rank dies
	}
	for _, c := range start(n) {
		ranks.Go(func() { body(t, c) })
	}
	ranks.Wait()
}

// noted is a Completer that does nothing.
type noted struct{}

func (noted) Completed(*transport.Request) {}

// BenchmarkMessage measures the matching of a message of 8 bytes, in one goroutine, while
// others wait in the queue that it goes through: receives, or messages with other tags.
func BenchmarkMessage(b *testing.B) {
	for _, first := range []string{"receive", "message"} {
		for _, others := range []int{0, 4, 16, 64, 1000} {
			b.Run(fmt.Sprintf("%s first, %d others", first, others), func(b *testing.B) {
				ranks := New(2)
				buf := make([]byte, 8)
				recv := func(tag int, r *transport.Request) {
					*r = transport.Request{Private: r.Private, Buf: buf, Peer: 0, Tag: tag, Done: noted{}}
					ranks[1].Irecv(r)
				}
				r := new(transport.Request)
				send := func(tag int, _ *transport.Request) { ranks[0].TrySend(1, tag, 0, 0, buf) }
				begin, end := recv, send
				if first == "message" {
					begin, end = send, recv
				}
				for i := range others {
					begin(i+1, new(transport.Request))
				}
				for b.Loop() {
					begin(0, r)
					end(0, r)
				}
			})
		}
	}
}
