package node

import (
	"fmt"
	"math"
	"testing"

	"github.com/mpicx/go-mpicx/internal/buildtags"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/transporttest"
)

// The suite of all transports: with packets and transfers that go through the fabric, with
// those that go through shared memory or are read from the sender's, and with messages longer than a fabric can count,
// which go in parts.
func TestConformanceInMemory(t *testing.T) {
	for _, test := range []struct {
		ranks    int
		share    bool
		longest  int
		pullable int
	}{
		{1, false, Longest, 0}, {2, false, Longest, 0}, {3, false, 1000, 0},
		{2, true, Longest, math.MaxInt}, {3, true, Longest, math.MaxInt}, {2, true, Longest, 0}, {3, true, Longest, 0},
	} {
		if (testing.Short() || buildtags.Race) && test.ranks == 3 {
			continue
		}
		t.Run(fmt.Sprintf("%d ranks, shared memory %t, parts of %d, pulled from %d on", test.ranks, test.share, test.longest, test.pullable), func(t *testing.T) {
			longest, pullable := Longest, Pullable
			t.Cleanup(func() { Longest, Pullable = longest, pullable }) // after the job has ended
			Longest, Pullable = test.longest, test.pullable
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
