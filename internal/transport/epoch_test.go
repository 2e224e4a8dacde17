package transport

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every count of every generation, with the others at random: Next adds one to
// that count alone, and wraps.
func TestNextCountsOneGeneration(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for generation := range 12 {
		at := min(generation, 7)
		for count := range 256 {
			e := Epoch(r.Uint64())&^(0xff<<(8*at)) | Epoch(count)<<(8*at)
			next := e.Next(generation)
			for b := range 8 {
				want := byte(e >> (8 * b))
				if b == at {
					want++
				}
				if got := byte(next >> (8 * b)); got != want {
					t.Fatalf("%#x.Next(%d) = %#x: byte %d is %#x, want %#x", e, generation, next, b, got, want)
				}
			}
		}
	}
}

// Every pair of counts of one generation, at every position: the older one is
// stale if the newer is up to half a turn ahead.
func TestStaleComparesCountsThatWrap(t *testing.T) {
	for at := range 8 {
		for a := range 256 {
			for b := range 256 {
				others := Epoch(0x8182838485868788) &^ (0xff << (8 * at))
				e, f := others|Epoch(a)<<(8*at), others|Epoch(b)<<(8*at)
				ahead := (b - a + 256) % 256 // of f
				want := ahead != 0 && ahead <= 128
				if got := e.Stale(f); got != want {
					t.Fatalf("%#x.Stale(%#x) = %v, %d ahead", e, f, got, ahead)
				}
			}
		}
	}
}

func TestStaleIsBehindInAnyGeneration(t *testing.T) {
	for _, c := range []struct {
		name string
		e, f Epoch
		want bool
	}{
		{"same", 0x0305, 0x0305, false},
		{"behind in the root's count", 0x0304, 0x0305, true},
		{"behind in the child's", 0x0205, 0x0305, true},
		{"behind in both", 0x0204, 0x0305, true},
		{"ahead in both", 0x0406, 0x0305, false},
		{"ahead in the root's, behind in the child's", 0x0206, 0x0305, true},
		{"behind in the root's, ahead in the child's", 0x0404, 0x0305, true},
		{"ahead over the wrap", 0x0001, 0x00ff, false},
		{"behind over the wrap", 0x00ff, 0x0001, true},
		{"behind in the last generation", 0xff << 56, 0, true},
	} {
		require.Equal(t, c.want, c.e.Stale(c.f), c.name)
	}
}

// vector is an epoch with counts that neither wrap nor are packed.
type vector [8]int

func (v *vector) next(generation int) { v[min(generation, 7)]++ }

func (v vector) behind(w vector) bool {
	for i := range v {
		if v[i] < w[i] {
			return true
		}
	}
	return false
}

// Two ranks learn of the same errors, each in its own order and at its own
// time, for thousands of errors. As long as they are not too far apart, epochs
// compare like the counts that they stand for, and in the end they are equal.
func TestEpochsCompareLikeCounts(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 3))
		var e [2]Epoch
		var v [2]vector
		// What each rank has yet to learn, by generation.
		var unknown [2][10]int
		for range 5000 {
			rank, generation := r.IntN(2), r.IntN(10)
			if unknown[rank][generation] > 0 {
				unknown[rank][generation]-- // the other's error
			} else if unknown[1-rank][generation] < 1 {
				unknown[1-rank][generation]++ // an error the other does not know yet
			} else {
				continue
			}
			e[rank] = e[rank].Next(generation)
			v[rank].next(generation)
			require.Equal(t, v[0].behind(v[1]), e[0].Stale(e[1]), "seed %d: %v, %v", seed, v[0], v[1])
			require.Equal(t, v[1].behind(v[0]), e[1].Stale(e[0]), "seed %d: %v, %v", seed, v[0], v[1])
		}
		for rank := range 2 {
			for generation, n := range unknown[rank] {
				for range n {
					e[rank] = e[rank].Next(generation)
				}
			}
		}
		require.Equal(t, e[0], e[1], "seed %d", seed)
		require.False(t, e[0].Stale(e[1]))
	}
}

func FuzzEpoch(f *testing.F) {
	f.Add(uint64(0), uint64(0), 0)
	f.Add(uint64(0xff), uint64(0x100), 9)
	f.Fuzz(func(t *testing.T, a, b uint64, generation int) {
		e, g := Epoch(a), Epoch(b)
		if generation < 0 {
			generation = 0
		}
		next := e.Next(generation)
		require.True(t, e.Stale(next))
		require.False(t, next.Stale(e))
		require.False(t, e.Stale(e))
		require.Equal(t, next.Next(3), e.Next(3).Next(generation), "the order of errors does not matter")
		if !e.Stale(g) && !g.Stale(e) {
			require.Equal(t, e, g)
		}
	})
}

// Counts name an epoch that is a little older or younger, however often it has wrapped.
func TestCounts(t *testing.T) {
	var c Counts
	var epochs []Epoch
	var counts []Counts
	e := Epoch(0)
	for i := range 3000 {
		epochs, counts = append(epochs, e), append(counts, c)
		generation := i % 3 * 4 // 0, 4, and the last, which others share
		e = e.Next(generation)
		c.Next(generation)
		for back := range min(i, 100) {
			require.Equal(t, counts[i-back], c.At(epochs[i-back]))
			require.Equal(t, c, counts[i-back].At(e))
		}
	}
}
