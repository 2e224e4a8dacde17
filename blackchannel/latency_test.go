package blackchannel_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/blackchannel"
	"github.com/mpicx/go-mpicx/internal/buildtags"
	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/sim"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// cray is the machine of internal/lab/bench's rows in virtual time.
var cray = sim.LogGP{Latency: 1200 * time.Nanosecond, Overhead: 300 * time.Nanosecond, Gap: 400 * time.Nanosecond, GapPerByte: 0.125}

// attendant is a client whose program is inside an operation all the time.
type attendant struct {
	*blackchannel.Channel
	world    *sim.World
	rank     int
	verdicts []*errchan.Verdict
	told     time.Duration // when the last of them came, by the rank's clock
}

func (a *attendant) Noticed(round uint64, _ int, _ bool) { a.Join(round, nil) }
func (a *attendant) Resolved(v *errchan.Verdict) {
	a.verdicts = append(a.verdicts, v)
	a.told = a.world.RankNow(a.rank)
}

// errorAt returns how long it takes from an error at the given ranks to the verdict at the last of
// n, each with a channel.
func errorAt(t *testing.T, n int, raisers ...int) (last time.Duration) {
	const start = time.Microsecond
	w := sim.New(sim.Config{Ranks: n, Model: cray})
	ranks := make([]attendant, n)
	for r := range ranks {
		w.At(0, r, func() {
			dup, err := w.Comm(r).Sub(transport.ErrorChannelName(), nil)
			require.NoError(t, err)
			ranks[r] = attendant{world: w, rank: r}
			ranks[r].Channel = blackchannel.New(dup, 0, nil, &ranks[r])
			ranks[r].Listen()
		})
	}
	for _, r := range raisers {
		w.At(start, r, func() { ranks[r].Raise(make([]byte, 16), false, nil) })
	}
	require.NoError(t, w.Run())
	for r := range ranks {
		require.Len(t, ranks[r].verdicts, 1)
		require.Len(t, ranks[r].verdicts[0].Reports, len(raisers))
		last = max(last, ranks[r].told-start)
	}
	return last
}

// mostRanks is how many the tests below go up to.
func mostRanks() int {
	if testing.Short() || buildtags.Race {
		return 1024
	}
	return 8192
}

// Each of the four waves (notices up and down, reports up, verdict down) takes as
// long as its longest chain of messages, and no message of that chain waits for
// another: twice the ranks cost one message more in each wave (P6). With the
// smallest subtree first, 8,192 ranks took 240 µs in place of 92.
func TestLatency(t *testing.T) {
	const wire = 1810 * time.Nanosecond // how long a message of a few bytes takes that nothing holds up
	var before time.Duration
	for n := 64; n <= mostRanks(); n *= 2 {
		worst := time.Duration(0)
		for _, r := range []int{0, 1, n/2 - 1, n / 2, n - 1} {
			worst = max(worst, errorAt(t, n, r))
		}
		if before > 0 {
			require.LessOrEqual(t, worst-before, 4*wire, "%d ranks take %v, half of them %v", n, worst, before)
		}
		before = worst
	}
}

// If every rank has an error, the verdict takes as long as one copy of it on each
// edge from the root to the deepest leaf, on top of the waves. With the smallest
// subtree first, 8,192 ranks took 1.98 ms in place of 0.33.
func TestLatencyOfErrorsAtAll(t *testing.T) {
	for n, depth := 512, 9; n <= mostRanks(); n, depth = 2*n, depth+1 {
		all := make([]int, n)
		for r := range all {
			all[r] = r
		}
		longest := time.Duration(float64(21*n) * cray.GapPerByte) // of a report's data 16 bytes, the rest 5 at most
		require.LessOrEqual(t, errorAt(t, n, all...), errorAt(t, n, n/2-1)+time.Duration(depth)*longest, "%d ranks", n)
	}
}
