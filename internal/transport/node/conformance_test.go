package node

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/buildtags"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/transporttest"
)

// The suite of all transports: with packets and transfers that go through the fabric, with those
// that go through shared memory or are read from the sender's; and between machines, with longer
// packets.
func TestConformanceInMemory(t *testing.T) {
	const never = math.MaxInt
	for _, test := range []struct {
		ranks    int
		share    bool
		pullable int
		packet   int // between machines; 0: there is one
	}{
		{1, false, never, 0}, {2, false, never, 0}, {3, false, never, 0},
		{2, true, never, 0}, {3, true, never, 0}, {2, true, 0, 0}, {3, true, 0, 0},
		{2, true, never, 20000}, {3, true, 0, 20000},
	} {
		if (testing.Short() || buildtags.Race) && test.ranks == 3 {
			continue
		}
		name := fmt.Sprintf("%d ranks, shared memory %t, pulled from %d on, packets of %d", test.ranks, test.share, test.pullable, test.packet)
		t.Run(name, func(t *testing.T) {
			pullable := Pullable
			t.Cleanup(func() { Pullable = pullable }) // after the job has ended
			Pullable = test.pullable
			job := &memoryJob{share: test.share, machines: make([]int, test.ranks), knows: true, packet: test.packet}
			if test.packet > 0 {
				job.machines[test.ranks-1] = 1
			}
			jobs := start(t, job, Options{Mortal: test.ranks == 3 && test.packet == 0}) // the same while no process dies
			var made uint64
			transporttest.Run(t, func(t *testing.T, body func(*testing.T, transport.Comm)) {
				made++
				each(test.ranks, func(r int) {
					c, err := jobs[r].World().Sub(transport.Name{Seq: made}, nil)
					require.NoError(t, err)
					body(t, c)
				})
			})
		})
	}
}
