package node

import (
	"fmt"
	"testing"

	"github.com/mpicx/go-mpicx/internal/buildtags"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/transporttest"
)

// The suite of all transports: with packets and transfers that go through the fabric, with
// those that go through shared memory; with messages longer than a fabric can count, which go in parts;
// and between machines, with longer packets.
func TestConformanceInMemory(t *testing.T) {
	for _, test := range []struct {
		ranks   int
		share   bool
		longest int
		packet  int // between machines; 0: there is one
	}{
		{1, false, Longest, 0}, {2, false, Longest, 0}, {3, false, 1000, 0}, {2, true, Longest, 0}, {3, true, Longest, 0},
		{2, true, Longest, 20000}, {3, true, 1000, 20000},
	} {
		if (testing.Short() || buildtags.Race) && test.ranks == 3 {
			continue
		}
		t.Run(fmt.Sprintf("%d ranks, shared memory %t, parts of %d, packets of %d", test.ranks, test.share, test.longest, test.packet), func(t *testing.T) {
			before := Longest
			t.Cleanup(func() { Longest = before }) // after the job has ended
			Longest = test.longest
			job := &memoryJob{share: test.share, machines: make([]int, test.ranks), knows: true, packet: test.packet}
			if test.packet > 0 {
				job.machines[test.ranks-1] = 1
			}
			jobs := start(t, job, Options{})
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
