package transport

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// vector is what an epoch stands for.
type vector [Generations]int64

func (v *vector) epoch() (e Epoch) {
	for i, n := range v {
		e += Epoch(n)<<32 | Epoch(n&3)<<(2*i)
	}
	return e
}

// behind is what makes a message of v stale at w.
func (v *vector) behind(w *vector) bool {
	for i := range v {
		if v[i] < w[i] {
			return true
		}
	}
	return false
}

// Every count of every generation, with the others at random: Next adds one to that
// count and to the sum, and to nothing else.
func TestNextCountsOneGeneration(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for generation := range Generations {
		var v vector
		for i := range v {
			v[i] = r.Int64N(1 << 40)
		}
		for range 300 {
			e := v.epoch()
			v[generation]++
			require.Equal(t, v.epoch(), e.Next(generation), "error of generation %d in epoch %#x", generation, uint64(e))
			require.NotEqual(t, ^Epoch(0), v.epoch(), "transports use it for none")
		}
	}
}

func TestNextPanicsWhereNoCountIs(t *testing.T) {
	for _, generation := range []int{-1, 16, 17, math.MaxInt} {
		require.PanicsWithError(t, (&GenerationError{generation}).Error(), func() { Epoch(0).Next(generation) })
		require.Equal(t, &GenerationError{generation}, Name{Generation: generation}.Check())
	}
	require.NoError(t, Name{Generation: 15}.Check())
	require.EqualError(t, &GenerationError{16}, "communicator of generation 16, expected 0 to 15: "+
		"one may be derived from another that is derived, and so on, 15 times at most")
}

// Wherever a live rank may be, in any of its counts one error behind, as far, or one
// ahead: all 3¹⁶ pairs.
func TestStaleAmongLiveRanks(t *testing.T) {
	var f vector
	for i := range f {
		f[i] = int64(1000 + i) // all residues
	}
	epoch := f.epoch()
	var try func(generation int, e Epoch, behind bool)
	try = func(generation int, e Epoch, behind bool) {
		if generation == Generations {
			if e.Stale(epoch) != behind {
				t.Fatalf("%#x.Stale(%#x) = %v", uint64(e), uint64(epoch), !behind)
			}
			return
		}
		for d := range 3 {
			next := e
			for range d {
				next = next.Next(generation)
			}
			try(generation+1, next, behind || d == 0)
		}
	}
	oldest := f
	for i := range oldest {
		oldest[i]--
	}
	try(0, oldest.epoch(), false)
}

// Messages that are arbitrarily old in some counts, and ahead in others: up to where counts have
// come around some times, and powers of two.
func TestStaleOfOldMessages(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 1_000_000 {
		var e, f vector
		for i := range f {
			f[i] = r.Int64N(1<<40) + 1<<33
			switch d := &e[i]; r.IntN(4) {
			case 0:
				*d = f[i] + r.Int64N(4) // ahead
			case 1:
				*d = f[i] - r.Int64N(13)
			case 2:
				*d = f[i] - 1<<r.IntN(27)
			default:
				*d = f[i]
			}
		}
		if a, b := e.epoch(), f.epoch(); a.Stale(b) != e.behind(&f) { // require is slow
			t.Fatalf("%#x.Stale(%#x) = %v: %v, %v", uint64(a), uint64(b), a.Stale(b), e, f)
		}
	}
}

// A rank that is far behind everybody, as it must not be, still keeps what is for it.
func TestStaleKeepsWhatIsFarAhead(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 100_000 {
		var e, f vector
		for i := range f {
			f[i] = r.Int64N(1 << 40)
			e[i] = f[i] + r.Int64N(1<<r.IntN(27))
		}
		require.False(t, e.epoch().Stale(f.epoch()), "%v, %v", e, f)
	}
}

func TestEpochString(t *testing.T) {
	for _, c := range []struct {
		want        string
		generations []int
	}{
		{"0", nil},
		{"1", []int{0}},
		{"5", []int{0, 0, 0, 0, 0}},
		{"1 (0.1)", []int{1}},
		{"8 (1.2.0.1)", []int{0, 0, 0, 0, 0, 1, 1, 3}},
	} {
		var e Epoch
		for _, g := range c.generations {
			e = e.Next(g)
		}
		require.Equal(t, c.want, e.String(), "after errors of generations %v", c.generations)
	}
}

func TestErrorTexts(t *testing.T) {
	require.EqualError(t, &TruncateError{Status: Status{Source: 3, Tag: 7, Bytes: 100}, Room: 64},
		"message of 100 bytes from rank 3 with tag 7 is longer than the buffer of 64 bytes")
	require.EqualError(t, ErrCancelled, "cancelled")
	require.EqualError(t, &DeadError{3}, "the process of rank 3 has died")
	require.EqualError(t, &DeadError{AnySource}, "the processes of all other ranks of the communicator have died")
	require.EqualError(t, &LeftError{Rank: 3}, "rank 3 has returned")
	require.EqualError(t, &LeftError{Rank: 3, Released: true}, "rank 3 has released the communicator")
	require.EqualError(t, &LeftError{Rank: AnySource}, "every other rank of the communicator has returned")
	require.EqualError(t, &LeftError{AnySource, true}, "every other rank of the communicator has returned or released it")
}

func TestKindString(t *testing.T) {
	for kind, want := range map[Kind]string{Idle: "idle", Sending: "send", Receiving: "receive", Probing: "probe", Mprobing: "matched probe"} {
		require.Equal(t, want, kind.String())
	}
}
