package mpi

import (
	"fmt"
	"testing"

	"github.com/mpicx/go-mpicx/internal/buildtags"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/transporttest"
)

// All but the calls of MPI itself passes the suite of all transports: with packets
// and transfers that go through MPI, with those that go through shared memory, and with
// messages longer than MPI can count, which go in parts.
func TestConformanceInMemory(t *testing.T) {
	for _, test := range []struct {
		ranks   int
		share   bool
		longest int
	}{
		{1, false, longest}, {2, false, longest}, {3, false, 1000}, {2, true, longest}, {3, true, longest},
	} {
		if (testing.Short() || buildtags.Race) && test.ranks == 3 {
			continue
		}
		t.Run(fmt.Sprintf("%d ranks, shared memory %t, parts of %d", test.ranks, test.share, test.longest), func(t *testing.T) {
			before := longest
			t.Cleanup(func() { longest = before }) // after the job has ended
			longest = test.longest
			jobs := startMemory(t, test.ranks, test.share, false)
			var made uint64
			transporttest.Run(t, func(t *testing.T, body func(*testing.T, transport.Comm)) {
				made++
				each(test.ranks, func(r int) {
					jobs[r].World().Sub(transport.Name{Seq: made}, nil, func(c transport.Comm, err error) {
						if err != nil {
							t.Errorf("process %d: %v", r, err)
							return
						}
						body(t, c)
					})
				})
			})
		})
	}
}
