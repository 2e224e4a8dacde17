package node

import (
	"fmt"
	"testing"

	"github.com/mpicx/go-mpicx/internal/buildtags"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/transporttest"
)

// The suite of all transports: with packets and transfers that go through the fabric, with
// those that go through shared memory, and with messages longer than a fabric can count,
// which go in parts.
func TestConformanceInMemory(t *testing.T) {
	for _, test := range []struct {
		ranks   int
		share   bool
		longest int
	}{
		{1, false, Longest}, {2, false, Longest}, {3, false, 1000}, {2, true, Longest}, {3, true, Longest},
	} {
		if (testing.Short() || buildtags.Race) && test.ranks == 3 {
			continue
		}
		t.Run(fmt.Sprintf("%d ranks, shared memory %t, parts of %d", test.ranks, test.share, test.longest), func(t *testing.T) {
			before := Longest
			t.Cleanup(func() { Longest = before }) // after the job has ended
			Longest = test.longest
			jobs := startMemory(t, test.ranks, test.share, false)
			var made uint64
			transporttest.Run(t, func(t *testing.T, body func(*testing.T, transport.Comm)) {
				made++
				each(test.ranks, func(r int) {
					c, err := jobs[r].World().Sub(transport.Name{Seq: made}, nil)
					if err != nil {
						t.Errorf("process %d: %v", r, err)
						return
					}
					body(t, c)
				})
			})
		})
	}
}
