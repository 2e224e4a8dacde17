package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mpicx/go-mpicx/internal/buildtags"
	"github.com/mpicx/go-mpicx/mpicx"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The first of the programs that CI runs. What happens once in a million orders of events is for
// make nightly, which counts it: here a failure has to come again, so that no change fails by
// chance.
func TestPrograms(t *testing.T) {
	n := uint64(2000)
	if testing.Short() || buildtags.Race {
		n = 200
	}
	for name, share := range map[string]uint64{"one goroutine": 0, "several goroutines": 100} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			c := &checker{next: 1, until: 1 + n, goroutines: share, repeats: 100, out: &out, seen: make(map[string]int)}
			c.run(t)
			require.Zero(t, c.failed, "%v", &out)
			t.Log(&out)
		})
	}
}

// One seed is one program. A clone of it can be changed without changing the original.
func TestSeeds(t *testing.T) {
	texts := make(map[string]bool)
	for seed := range uint64(500) {
		p := generate(seed, 50)
		require.Equal(t, p.String(), generate(seed, 50).String())
		texts[p.String()] = true
		for i := range count(p.body) {
			q := p.clone()
			q.body = edit(q.body, i, func(*step) []*step { return nil })
			require.Less(t, q.size(), p.size())
		}
		require.Equal(t, p.String(), generate(seed, 50).String())
	}
	require.Greater(t, len(texts), 490)
}

// A program shrinks to the steps that its failure needs.
func TestShrink(t *testing.T) {
	expires := func(q *program) bool {
		for i := range count(q.body) {
			if nth(q.body, i).kind == doExpire {
				return true
			}
		}
		return false
	}
	shrunk := 0
	for seed := range uint64(200) {
		p := generate(seed, 50)
		if !expires(p) {
			continue
		}
		small := shrink(p, expires)
		require.True(t, expires(small))
		require.Equal(t, 2, small.ranks)
		require.Zero(t, small.net)
		shrunk++
	}
	require.Positive(t, shrunk)
}

// made is a history that a test makes: two ranks of the world, and what they were told.
type made struct {
	*history
	world    *inst
	verdicts map[string]error // by rank and failures
}

func newMade() *made {
	return &made{newHistory(2), &inst{name: "world", members: []int{0, 1}}, make(map[string]error)}
}

func (m *made) raises(rank int, text string) { m.raise(m.world, rank, text, false, true) }

func (m *made) told(rank int, what string, failures ...mpicx.Failure) {
	v := event{what: what, comm: m.world, begin: m.now(), quiet: true}
	if len(failures) > 0 {
		key := fmt.Sprint(rank, failures)
		if m.verdicts[key] == nil {
			m.verdicts[key] = verdict(failures...)
		}
		v.err = m.verdicts[key]
	}
	v.end = m.now()
	m.classify(&v, []*inst{m.world}, false)
	m.events[rank] = append(m.events[rank], v)
}

// tries adds a TryAll of rank 1, in which a goroutine is told one error, and which returns another.
func (m *made) tries(inside, outside error) {
	m.several = true
	in := &running{step: &step{kind: doScope, how: tryAll}, comm: m.world, name: "1", begun: m.now()}
	for _, v := range []event{
		{what: "listener's Recv", begin: m.now(), err: inside, beside: true, listens: true, owner: in},
		{what: "TryAll", begin: in.begun, err: outside, scope: true},
	} {
		v.comm, v.in = m.world, in
		if v.scope {
			in.returned = m.now()
		}
		v.end = m.now()
		m.classify(&v, []*inst{m.world}, false, context.Canceled)
		m.events[1] = append(m.events[1], v)
		in.ended, in.of, in.key, in.failed = v.end, v.of, v.key, v.err != nil
	}
}

func verdict(failures ...mpicx.Failure) error { return &mpicx.PropagatedError{Failures: failures} }

// The model finds violations of the rules, and nothing else.
func TestModel(t *testing.T) {
	a, b := mpicx.Failure{Rank: 0, Message: "a"}, mpicx.Failure{Rank: 1, Message: "b"}
	for _, test := range []struct {
		name, rule string
		history    func(*made)
	}{
		{"the same everywhere", "", func(m *made) {
			m.raises(0, "a")
			m.raises(1, "b")
			m.told(0, "Signal", a, b)
			m.told(1, "Signal", a, b)
			m.told(1, "barrier")
		}},
		{"one was not asked", "", func(m *made) {
			m.raises(0, "a")
			m.told(0, "Signal", a)
		}},
		{"two rounds", "", func(m *made) {
			m.raises(0, "a")
			m.told(0, "Signal", a)
			m.told(1, "barrier", a)
			m.raises(1, "b")
			m.told(1, "Signal", b)
			m.told(0, "barrier", b)
		}},
		{"different ones", "P2: ranks are told of different verdicts", func(m *made) {
			m.raises(0, "a")
			m.raises(1, "b")
			m.told(0, "Signal", a, b)
			m.told(1, "Signal", b)
		}},
		{"another order", "P2: ranks are told of different verdicts", func(m *made) {
			m.raises(0, "a")
			m.told(0, "Signal", a)
			m.raises(0, "c")
			m.told(0, "Signal", mpicx.Failure{Rank: 0, Message: "c"})
			m.told(1, "barrier", mpicx.Failure{Rank: 0, Message: "c"})
			m.told(1, "barrier", a)
		}},
		{"one is missing", "P2: an error is in a later verdict", func(m *made) {
			m.raises(0, "a")
			m.raises(1, "b")
			m.told(0, "Signal", a)
			m.told(1, "Signal", a)
		}},
		{"nobody raised it", "P2: Signal returns a verdict with failures that nobody raised", func(m *made) { m.told(0, "Signal", a) }},
		{"of another rank", "P2: Signal returns a verdict with failures that nobody raised", func(m *made) {
			m.raises(0, "a")
			m.told(0, "Signal", mpicx.Failure{Rank: 1, Message: "a"})
		}},
		{"twice", "P1: a verdict is told twice", func(m *made) {
			m.raises(0, "a")
			m.told(0, "Signal", a)
			m.told(0, "barrier", a)
		}},
		{"a goroutine is told what its scope returns", "", func(m *made) {
			m.raises(0, "a")
			m.tries(verdict(a), verdict(a))
		}},
		{"it is told otherwise", "T1: a goroutine is told", func(m *made) {
			m.raises(0, "a")
			m.raises(1, "b")
			m.tries(verdict(a), verdict(b))
		}},
		{"its scope returns nil", "T1: a goroutine is told", func(m *made) {
			m.raises(0, "a")
			m.tries(verdict(a), nil)
		}},
		{"it is told only that its context has ended", "T3: a goroutine is told context canceled", func(m *made) {
			m.raises(0, "a")
			m.tries(context.Canceled, verdict(a))
		}},
		{"an error comes too late", "T2: an error is sent though another has come before", func(m *made) {
			m.raises(0, "a")
			m.raised[report{"world", 0, "a", false}][0].never = true
			m.tries(verdict(a), verdict(a))
		}},
		{"different ends", "TryAll 1 on world is", func(m *made) { m.units["TryAll 1 on world"] = map[int]string{0: "nil", 1: "a"} }},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := newMade()
			test.history(m)
			if len(m.failures) == 0 {
				m.check()
			}
			if test.rule == "" {
				require.Empty(t, m.failures)
			} else {
				require.NotEmpty(t, m.failures)
				require.Contains(t, m.failures[0], test.rule)
			}
		})
	}
}

// A hang ends the run at once. The report says in which operation each rank is blocked, and how to
// repeat the run.
func TestHang(t *testing.T) {
	p := &program{ranks: 2, backend: "blackchannel", body: []*step{{id: 1, kind: doOp, arg: opBarrier, ranks: 1}}}
	p.body = append([]*step{{id: 2, kind: doScope, how: try, body: []*step{{id: 3, kind: doLeave, how: byDeath, ranks: 2}}}}, p.body...)
	h := play(t, p) // the black channel sees no deaths
	require.NotEmpty(t, h.failures)
	require.Contains(t, h.failures[0], "hang: every rank waits for another\n  rank 0: Barrier waits for rank 1 on world")
}

// Programs replace dead ranks: spares are taken, of which some die and are replaced too, and
// sometimes there are too few.
func TestReplaces(t *testing.T) {
	taken, again, few := 0, 0, 0
	for seed := uint64(1); seed < 50_000 && (taken < 20 || again < 5 || few < 5); seed++ {
		p := generate(seed, 0)
		if p.spares == 0 {
			continue
		}
		h := play(t, p)
		require.Empty(t, h.failures, "seed %d", seed)
		taken += h.rescues
		for unit, byRank := range h.units {
			outcome := slices.Collect(maps.Values(byRank))[0] // of all ranks
			_, incarnations, _ := strings.Cut(outcome, "] [")
			if strings.HasPrefix(unit, "R1: Replace ") && outcome != "<nil>" {
				few++
			}
			if strings.HasPrefix(unit, "H5: members of r") && strings.Contains(incarnations, "2") {
				again++
			}
		}
	}
	require.GreaterOrEqual(t, taken, 20)
	require.GreaterOrEqual(t, again, 5)
	require.GreaterOrEqual(t, few, 5)
}
