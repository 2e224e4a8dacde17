package ulfmbackend

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/buildtags"
	"github.com/mpicx/go-mpicx/internal/errchan"
)

// H5: agreements end at all survivors, with the same flag and the same dead; the
// flag is the AND over contributors, among them all survivors.
func TestAgreementExhaustively(t *testing.T) {
	for _, test := range []struct{ n, calls, deaths int }{
		{1, 2, 0}, {2, 2, 1}, {3, 1, 2}, {3, 2, 1}, {4, 1, 1},
		{3, 2, 2}, {4, 2, 1}, {4, 1, 2}, {5, 1, 1},
	} {
		if (testing.Short() || buildtags.Race) && test.n*test.calls*test.deaths > 6 {
			continue
		}
		t.Run(fmt.Sprintf("%d ranks, %d calls, %d deaths", test.n, test.calls, test.deaths), func(t *testing.T) {
			t.Parallel()
			u := newUniverse(test.n, test.deaths, func(r int) program { return program{calls: test.calls, flag: ^(1 << r)} })
			explore(t, u, (*universe).hasAgreed)
		})
	}
}

// hasAgreed says whether the survivors have agreed on the flags of all of them, and on who has
// died.
func (u *universe) hasAgreed() error {
	living := u.survivors()
	for _, d := range u.programs[living[0]].agreed {
		for _, other := range living {
			if d.Flag&(1<<other) != 0 {
				return fmt.Errorf("flag %b lacks what rank %d contributed", d.Flag, other)
			}
		}
		if i := slices.IndexFunc(d.Dead, u.alive); i >= 0 {
			return fmt.Errorf("rank %d lives, but %v", d.Dead[i], d)
		}
	}
	return u.isSettled()
}

func equalDecisions(a, b errchan.Decision) bool {
	return a.Flag == b.Flag && slices.Equal(a.Dead, b.Dead) && slices.Equal(a.Unacked, b.Unacked)
}

// P1, P2, H2: every survivor gets the same verdicts, and each report of a survivor
// is in one of them, unless a death made one of them the last.
func TestErrorsExhaustively(t *testing.T) {
	for _, test := range []struct {
		n, deaths int
		raises    []int
	}{
		{1, 0, []int{2}}, {2, 1, []int{1, 1}}, {3, 0, []int{1, 1, 1}}, {3, 1, []int{0, 1, 1}}, {3, 1, []int{1, 0, 0}},
		{3, 2, []int{0, 0, 1}}, {4, 2, []int{0, 0, 1, 0}}, {4, 1, []int{1, 0, 0, 1}}, {5, 1, []int{0, 1, 0, 0, 0}}, {4, 0, []int{0, 1, 0, 1}}, {4, 1, []int{0, 0, 1, 0}}, {4, 1, []int{0, 0, 0, 1}},
	} {
		if (testing.Short() || buildtags.Race) && test.n*test.deaths > 3 {
			continue
		}
		t.Run(fmt.Sprintf("raises %v, %d deaths", test.raises, test.deaths), func(t *testing.T) {
			t.Parallel()
			u := newUniverse(test.n, test.deaths, func(r int) program { return program{raises: test.raises[r]} })
			explore(t, u, func(u *universe) error { return u.hasResolved(test.raises) })
		})
	}
}

// hasResolved says whether the survivors have the same verdicts, and what each raised is in one.
func (u *universe) hasResolved(raises []int) error {
	if err := u.isSettled(); err != nil {
		return err
	}
	for _, r := range u.survivors() {
		p, own := u.programs[r], 0
		for i, v := range p.verdicts {
			own += len(v.Of(r))
			if v.Corrupt != (len(v.Dead) > 0) || v.Corrupt && i != len(p.verdicts)-1 {
				return fmt.Errorf("verdict %d of %d is %+v", i, len(p.verdicts), v)
			}
		}
		last := len(p.verdicts) > 0 && p.verdicts[len(p.verdicts)-1].Corrupt
		if own > raises[r] || own < raises[r] && !last {
			return fmt.Errorf("rank %d raised %d, and %d were resolved", r, raises[r], own)
		}
	}
	return nil
}

// H2, P8, C2: if a survivor unwinds, or needs a dead rank, all survivors get the same final verdict,
// even those that wait in Guard only for the end of its context, and that have heard before that
// another rank signals. The same holds if a rank dies while a round is open.
func TestCorruptionsExhaustively(t *testing.T) {
	for deaths, tests := range []string{
		"su us bw wb suw swu usw uws wsu wus bww wbw wwb uww wuw wwu suww wsuw wwsu wusw uwws",
		"suw swu usw uws wsu wus snw wns nsw sww wsw wws ssw wss uww wuw wwu uwww wuww wwwu np npr npnn",
		"npn npnn",
	} {
		for _, ranks := range strings.Fields(tests) {
			small := len(ranks) < 4 && deaths == 0 || strings.Contains(ranks, "p") && len(ranks)*deaths <= 6
			if (testing.Short() || buildtags.Race) && !small {
				continue
			}
			for _, prompt := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %d deaths, prompt %t", ranks, deaths, prompt), func(t *testing.T) {
					t.Parallel()
					exploreCorruptions(t, ranks, deaths, prompt)
				})
			}
		}
	}
}

// exploreCorruptions has ranks signal (s), unwind (u), do both (b), need a dead rank (n), signal
// and need one (r), wait (w), or only join what comes (p).
func exploreCorruptions(t *testing.T, ranks string, deaths int, prompt bool) {
	u := newUniverse(len(ranks), deaths, func(r int) program {
		is := func(of string) bool { return strings.Contains(of, ranks[r:r+1]) }
		p := program{unwinds: is("ub"), needs: is("nr"), waits: is("w"), prompt: prompt}
		if is("subr") {
			p.raises = 1 + strings.Count(ranks[r:r+1], "b")
		}
		return p
	})
	ends := 0
	explore(t, u, func(u *universe) error {
		again := slices.IndexFunc(u.programs, func(p program) bool { return p.secondNotices > 0 })
		if again >= 0 && !strings.ContainsAny(ranks, "sbr") {
			return fmt.Errorf("P6: rank %d has two notices of a round that is corrupt from the start", again)
		}
		corrupt, err := u.isCorrupted(func(r int) bool {
			return u.programs[r].unwinds || strings.Contains("nr", ranks[r:r+1]) && !u.programs[r].needs
		})
		if corrupt {
			ends++
		}
		return err
	})
	t.Log(ends, "ends with a corruption")
	if strings.ContainsAny(ranks, "ubnr") {
		require.Positive(t, ends)
	}
}

// isCorrupted says whether a survivor was to have corrupted the communicator. Then all
// have to have the same verdicts, the last of them final.
func (u *universe) isCorrupted(does func(r int) bool) (bool, error) {
	living := u.survivors()
	for _, r := range living {
		if p := u.programs[r]; len(living) < len(u.programs) && p.noticed && p.waits {
			return false, fmt.Errorf("P8: the round that is open at rank %d will have a death in its verdict, and the rank waits in Guard", r)
		}
	}
	if !slices.ContainsFunc(living, does) {
		return false, nil
	}
	first := u.programs[living[0]].verdicts
	for _, r := range living {
		p := u.programs[r]
		if p.noticed || len(p.verdicts) != len(first) || len(first) == 0 || !p.verdicts[len(first)-1].Corrupt {
			return true, fmt.Errorf("P8: rank %d has %d verdicts (and one open: %t), rank %d %d, expected the last to be final",
				r, len(p.verdicts), p.noticed, living[0], len(first))
		}
		for i, v := range p.verdicts {
			if verdictText(v) != verdictText(first[i]) {
				return true, fmt.Errorf("rank %d got %s, rank %d %s", r, verdictText(v), living[0], verdictText(first[i]))
			}
		}
	}
	return true, nil
}

// Ranks whose programs have ended hold nobody up, and count as dead.
func TestLeavingExhaustively(t *testing.T) {
	for _, test := range []struct {
		n, deaths int
		leave     []int
	}{{2, 0, []int{0}}, {2, 0, []int{1}}, {3, 1, []int{0}}, {3, 1, []int{2}}, {3, 0, []int{0, 1}}, {4, 0, []int{0, 2}}, {4, 1, []int{2}}, {4, 1, []int{3}}} {
		u := newUniverse(test.n, test.deaths, func(r int) program {
			if slices.Contains(test.leave, r) {
				return program{calls: 1 + r%2, flag: ^(1 << r), leaves: true} // it takes part in no agreement, or in one
			}
			return program{calls: 2, flag: ^(1 << r)}
		})
		explore(t, u, func(u *universe) error { return u.haveLeft(test.leave) })
	}
}

// haveLeft says whether the survivors whose programs continue have agreed twice, the last time without
// those that have left.
func (u *universe) haveLeft(leave []int) error {
	var first []errchan.Decision
	for _, r := range u.survivors() {
		p := u.programs[r]
		if p.left {
			continue
		}
		if first == nil {
			first = p.agreed
		}
		if len(p.agreed) != 2 || !slices.EqualFunc(p.agreed, first, equalDecisions) {
			return fmt.Errorf("rank %d agreed %v, another %v", r, p.agreed, first)
		}
		for _, gone := range leave {
			if gone < len(u.machines) && !slices.Contains(p.agreed[1].Unacked, gone) {
				return fmt.Errorf("rank %d agreed %v without rank %d", r, p.agreed[1], gone)
			}
		}
	}
	return nil
}

// H4: if a survivor revokes, all survivors get to know, once.
func TestRevokeExhaustively(t *testing.T) {
	for n := 1; n <= 4; n++ {
		for deaths := 0; deaths <= min(2, n-1); deaths++ {
			for by := range n {
				u := newUniverse(n, deaths, func(r int) program { return program{revokes: r == by || r == n-1} })
				explore(t, u, func(u *universe) error { return u.hasRevoked(by, n-1) })
			}
		}
	}
}

// hasRevoked says whether the survivors know of a revoke by two ranks, and were told once.
func (u *universe) hasRevoked(one, other int) error {
	for _, r := range u.survivors() {
		if got := u.programs[r].revoked; got > 1 || got == 0 && (u.alive(one) || u.alive(other)) {
			return fmt.Errorf("rank %d was told %d times", r, got)
		}
	}
	return nil
}

// H5: errors and agreements have one order. No matter how errors interfere, an agreement that one
// survivor has completed is completed by all survivors that have proposed to it. So after an error
// all ranks that continue call the same next agreement, and it ends.
func TestAllOrNoneExhaustively(t *testing.T) {
	for _, test := range []struct {
		n, deaths int
		raises    []int
		parent    bool // has an error
		creates   bool
		calls     int
	}{
		{n: 1, raises: []int{1}, parent: true, calls: 1, creates: true},
		{n: 2, raises: []int{0, 0}, parent: true, calls: 2},
		{n: 2, raises: []int{1, 0}, calls: 2, creates: true},
		{n: 2, deaths: 1, raises: []int{1, 1}, calls: 1},
		{n: 2, deaths: 1, raises: []int{0, 1}, parent: true, calls: 1},
		{n: 3, raises: []int{0, 0, 0}, parent: true, calls: 1},
		{n: 3, raises: []int{0, 0, 0}, parent: true, creates: true},
		{n: 3, raises: []int{1, 0, 0}, calls: 1},
		{n: 3, deaths: 1, raises: []int{0, 0, 0}, parent: true, calls: 1},
		{n: 3, deaths: 1, raises: []int{0, 1, 0}, calls: 1}, // 0 decides, then a verdict; the messages 0→1 are lost with 0
		{n: 3, deaths: 1, raises: []int{0, 0, 1}, calls: 1},
		{n: 3, deaths: 2, raises: []int{0, 0, 1}, calls: 1},
		{n: 3, raises: []int{0, 1, 0}, parent: true, calls: 1},
		{n: 3, deaths: 1, raises: []int{0, 1, 0}, parent: true, calls: 1},
	} {
		large := test.n == 3 && (test.parent || test.deaths > 0)
		huge := large && test.parent && test.deaths > 0 && slices.Max(test.raises) > 0 // minutes: make nightly
		if (testing.Short() || buildtags.Race) && large || huge && os.Getenv("MPICX_NIGHTLY") == "" {
			continue
		}
		t.Run(fmt.Sprintf("%+v", test), func(t *testing.T) {
			t.Parallel()
			u := newUniverse(test.n, test.deaths, func(r int) program {
				return program{calls: test.calls, creates: test.creates, flag: ^(1 << r), raises: test.raises[r]}
			})
			u.parent.errs = test.parent
			explore(t, u, (*universe).isSettled)
		})
	}
}

// H6: a rank that has closed the communicator forgets it when all ranks have closed it, and not
// before. The ranks that have forgotten it take no messages for it, but the other ranks still
// forget it too. No rank keeps it, unless a rank dies that has been told that all have closed it.
func TestReleaseExhaustively(t *testing.T) {
	for _, test := range []struct {
		n, deaths, calls int
		raises           []int
		revokes          []int
		parent           bool // has an error
	}{
		{n: 2, raises: []int{0, 0}, parent: true},
		{n: 1, raises: []int{1}},
		{n: 2, calls: 2, raises: []int{1, 0}, revokes: []int{1}},
		{n: 2, deaths: 1, raises: []int{1, 1}},
		{n: 3, raises: []int{0, 1, 1}},
		{n: 3, calls: 1, raises: []int{0, 0, 1}},
		{n: 3, calls: 1, raises: []int{0, 0, 0}, revokes: []int{0, 2}},
		{n: 4, raises: []int{0, 0, 0, 0}, revokes: []int{3}},
		{n: 3, deaths: 1, raises: []int{0, 0, 1}},
		{n: 3, deaths: 1, calls: 1, raises: []int{0, 0, 0}},
		{n: 4, deaths: 1, raises: []int{0, 0, 0, 0}, revokes: []int{1}},
		{n: 4, raises: []int{0, 0, 1, 0}},
		{n: 4, deaths: 2, raises: []int{0, 0, 0, 0}},
		{n: 4, deaths: 1, raises: []int{0, 0, 0, 1}},
	} {
		huge := test.n*test.deaths == 4 && slices.Max(test.raises) > 0
		if (testing.Short() || buildtags.Race) && test.n*(1+test.deaths) > 4 || huge && os.Getenv("MPICX_NIGHTLY") == "" {
			continue
		}
		t.Run(fmt.Sprintf("%+v", test), func(t *testing.T) {
			t.Parallel()
			u := newUniverse(test.n, test.deaths, func(r int) program {
				return program{calls: test.calls, flag: -1, raises: test.raises[r], revokes: slices.Contains(test.revokes, r), closes: true}
			})
			u.parent.errs = test.parent
			releases := 0
			explore(t, u, func(u *universe) error {
				n, err := u.isReleased()
				releases += n
				return err
			})
			t.Log(releases, "releases in the end")
			require.Positive(t, releases)
		})
	}
}

// isReleased returns how many survivors have forgotten the communicator.
func (u *universe) isReleased() (n int, err error) {
	released := slices.ContainsFunc(u.programs, func(p program) bool { return p.released })
	for _, r := range u.survivors() {
		p := &u.programs[r]
		switch {
		case !p.closed:
			return 0, fmt.Errorf("rank %d hangs: %s", r, u.machines[r].Waiting())
		case !p.released && (u.dead == 0 || !released):
			return 0, fmt.Errorf("rank %d keeps what all have closed", r)
		case p.released:
			n++
		}
	}
	return n, nil
}
