package blackchannel_test

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/binomial"
	"github.com/mpicx/go-mpicx/internal/buildtags"
)

// TestLogarithmic checks design rule P6 for one error, raised at any rank: the longest chain of
// messages from it to the last verdict, and the messages that one rank sends.
func TestLogarithmic(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 0))
	check := func(t *testing.T, n, rank int, shuffle, corrupt bool) {
		net := newNetwork(n)
		for r := range n {
			net.attends[r] = true
		}
		net.raise(rank, "x", corrupt)
		for len(net.busy) > 0 {
			next := 0
			if shuffle {
				next = rnd.IntN(len(net.busy))
			}
			require.NoError(t, net.deliver(net.busy[next]))
		}
		log := bits.Len(uint(n - 1)) // of n to base 2, rounded up
		for r := range n {
			require.Len(t, net.verdicts[r], 1)
			require.LessOrEqual(t, net.depth[r], 4*log, "depth at rank %d of %d, error at %d", r, n, rank)
			require.LessOrEqual(t, net.sent[r], 2*(binomial.Children(r, n)+1), "messages of rank %d of %d, error at %d", r, n, rank)
			require.LessOrEqual(t, net.sent[r], 2*(log+1))
		}
	}
	most, large := 100, []int{255, 256, 257, 777, 1023, 1024, 6000}
	if testing.Short() || buildtags.Race {
		most, large = 40, []int{255, 256, 257, 1024}
	}
	for n := 1; n <= most; n++ {
		for rank := range n {
			check(t, n, rank, rank%2 == 1, rank%3 == 1)
		}
	}
	for _, n := range large {
		for _, rank := range []int{0, 1, 2, 3, n / 3, n / 2, n - 2, n - 1, rnd.IntN(n), rnd.IntN(n)} {
			check(t, n, rank, false, rank%2 == 1)
		}
	}
}

// TestManyReports checks P6 where every rank raises often, before and while the others' reports
// come: a rank sends each report of its subtree to its parent once, or twice if the first came too
// late for the verdict, and each verdict to each child.
func TestManyReports(t *testing.T) {
	const n, each, size = 64, 16, 1024
	rnd := rand.New(rand.NewPCG(1, 0))
	net := newNetwork(n)
	for r := range n {
		net.attends[r] = true
	}
	left := make([]int, 0, n*each)
	for i := range n * each {
		left = append(left, i%n)
	}
	rnd.Shuffle(len(left), func(i, j int) { left[i], left[j] = left[j], left[i] })
	for len(left) > 0 || len(net.busy) > 0 {
		if len(left) > 0 && (len(net.busy) == 0 || rnd.IntN(4) > 0) {
			net.raise(left[0], fmt.Sprintf("%0*d", size, len(left)), false)
			left = left[1:]
		} else {
			require.NoError(t, net.deliver(net.busy[rnd.IntN(len(net.busy))]))
		}
	}
	rounds := len(net.verdicts[0])
	most, total := 0, 0
	for r := range n {
		require.Equal(t, net.verdicts[0], net.verdicts[r], "rank %d and rank 0", r)
		children := binomial.Children(r, n)
		subtree := each // reports of
		if r == 0 {
			subtree = 0 // it has no parent
		} else {
			subtree <<= children
		}
		require.LessOrEqual(t, net.sent[r], 2*subtree+rounds*(2*children+2), "messages of rank %d in %d rounds", r, rounds)
		require.LessOrEqual(t, net.carried[r], (2*subtree+children*n*each)*size, "bytes of rank %d in %d rounds", r, rounds)
		most, total = max(most, net.sent[r]), total+net.carried[r]
	}
	t.Logf("%d rounds, at most %d messages at one rank, %.1f MB in all", rounds, most, float64(total)/1e6)
}
