package ulfmbackend

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/buildtags"
	"github.com/mpicx/go-mpicx/internal/errchan"
)

// sample takes one way through a universe that is too large to visit all of. It returns
// the last state, and what happened.
func sample(rng *rand.Rand, u *universe) (path []string) {
	for {
		var names []string
		var changes []func(*universe)
		only := true // deaths can happen
		u.events(func(name string, change func(*universe)) {
			if strings.HasSuffix(name, " dies") && rng.IntN(4) > 0 {
				return
			}
			only = only && strings.HasSuffix(name, " dies")
			names, changes = append(names, name), append(changes, change)
		})
		if only {
			return path
		}
		i := rng.IntN(len(names))
		changes[i](u)
		path = append(path, names[i])
	}
}

// samples takes one way through each of many universes, and checks its end.
func samples(t *testing.T, number int, stream uint64, make func(seed uint64, rng *rand.Rand) (*universe, func() error)) {
	if testing.Short() || buildtags.Race {
		number /= 10
	}
	for seed := range uint64(number) {
		rng := rand.New(rand.NewPCG(seed, stream))
		u, check := make(seed, rng)
		path := sample(rng, u)
		require.NoError(t, check(), "seed %d:\n%s", seed, strings.Join(path, "\n"))
	}
}

// P8, C2, in universes that are too large to visit: see TestCorruptionsExhaustively.
func TestCorruptionsSampled(t *testing.T) { sampleCorruptions(t, 3000, 8, func(*universe) {}) }

// sampleCorruptions samples universes in which a rank unwinds, each prepared.
func sampleCorruptions(t *testing.T, number int, stream uint64, prepare func(*universe)) {
	ends := 0
	samples(t, number, stream, func(_ uint64, rng *rand.Rand) (*universe, func() error) {
		n := 3 + rng.IntN(8)
		unwinds, signals := rng.IntN(n), rng.IntN(n)
		u := newUniverse(n, rng.IntN(n), func(r int) program {
			p := program{waits: rng.IntN(4) > 0, prompt: rng.IntN(2) > 0}
			if r == signals || r == unwinds {
				p.waits, p.raises, p.unwinds = false, 1+rng.IntN(2), r == unwinds
			}
			return p
		})
		prepare(u)
		return u, func() error {
			corrupt, err := u.isCorrupted(func(r int) bool { return r == unwinds })
			if corrupt {
				ends++
			}
			return err
		}
	})
	t.Log(ends, "ends with a corruption")
	require.Positive(t, ends)
}

// isSettled says whether the survivors have ended alike.
func (u *universe) isSettled() error {
	living := u.survivors()
	first := u.programs[living[0]]
	for _, r := range living {
		p := u.programs[r]
		switch {
		case p.revoked != first.revoked || p.revoked > 1:
			return fmt.Errorf("rank %d was told %d times of a revoke, rank %d %d times", r, p.revoked, living[0], first.revoked)
		case p.noticed || !slices.EqualFunc(p.verdicts, first.verdicts, equalVerdicts):
			return fmt.Errorf("rank %d has verdicts %v (and one open: %t), rank %d %v", r, p.verdicts, p.noticed, living[0], first.verdicts)
		case len(p.proposed) > 0:
			return fmt.Errorf("rank %d waits for %v", r, p.proposed)
		case len(p.agreed) != p.calls || !slices.EqualFunc(p.agreed, first.agreed, equalDecisions):
			return fmt.Errorf("rank %d agreed %v, rank %d %v", living[0], first.agreed, r, p.agreed)
		case !maps.EqualFunc(p.created, first.created, equalDecisions) || p.creates != (len(p.created) == 1):
			return fmt.Errorf("rank %d created %v, rank %d %v", living[0], first.created, r, p.created)
		}
	}
	return nil
}

func equalVerdicts(v, w *errchan.Verdict) bool { return verdictText(v) == verdictText(w) }

// H4, P1, H5, in universes that are too large to visit: errors of the communicator and of the one
// that it is derived from, revokes, deaths, and agreements of both kinds. With six ranks the
// binomial graph may fall apart before all have died that a rank would have to lose to be alone in
// the tree: there the flood first needs mending.
func TestAllOrNoneSampled(t *testing.T) {
	mended := sampleErrors(t, 24000, 5, 6, func(*universe) {})
	t.Log(mended, "floods were mended")
	require.Positive(t, mended)
}

// sampleErrors samples universes of up to most ranks, each prepared, and returns how many floods
// were mended.
func sampleErrors(t *testing.T, number int, stream uint64, most int, prepare func(*universe)) (mended int) {
	samples(t, number, stream, func(seed uint64, rng *rand.Rand) (*universe, func() error) {
		n := 2 + rng.IntN(most-1)
		creates, revoker := rng.IntN(2) == 0, rng.IntN(2*n)
		u := newUniverse(n, rng.IntN(n), func(r int) program {
			p := program{calls: int(seed%5+1) / 2, creates: creates, flag: ^(1 << r), revokes: r == revoker}
			if rng.IntN(n) == 0 {
				p.raises = 1 + rng.IntN(2)
			}
			return p
		})
		u.parent.errs = rng.IntN(3) > 0
		prepare(u)
		return u, func() error {
			for _, r := range u.survivors() {
				if m := u.machines[r]; len(m.revokes.beyond)+len(m.notices.beyond) > 0 {
					mended++
				}
			}
			return u.isSettled()
		}
	})
	return mended
}

// Ranks that leave hold nobody up, and count as dead in what the others agree on, after an error
// too; our own protocols and a library take turns.
func TestLeavingSampled(t *testing.T) {
	samples(t, 3000, 11, func(seed uint64, rng *rand.Rand) (*universe, func() error) {
		n, leaver := 2+rng.IntN(5), rng.IntN(3)
		u := newUniverse(n, rng.IntN(n), func(r int) program {
			return program{calls: 2, flag: ^(1 << r), leaves: r == leaver, raises: rng.IntN(n) / (n - 1)}
		})
		if seed%2 == 1 {
			u.withLibrary()
		}
		return u, func() error { return u.haveLeft([]int{leaver}) }
	})
}
