package replace

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// In every order of events, with up to two more deaths: rank 2 of the world of ranks 0 to 2 has
// died, ranks 3 and 4 wait, and ranks 0 and 1 decide that rank 3 takes its place. If rank 0 has
// died, rank 1 may decide that both take places; or an error ends the calls. Then the living ranks
// of a communicator have one idea of it, and in the end nobody waits for a rank that does not come.
func TestExhaustive(t *testing.T) {
	u := &universe{alive: [5]bool{true, true, false, true, true}}
	for r := range u.ranks {
		u.ranks[r] = New(r, len(u.ranks), 3)
		u.ranks[r].Died(2)
	}
	for _, r := range []int{3, 4} {
		u.fed(r, u.ranks[r].Wait())
		for to := range r { // greetings that come late are in TestGreeting
			if u.alive[to] {
				u.deliver(r, to)
			}
		}
	}
	u.deaths = 2
	if testing.Short() {
		u.deaths = 1
	}
	seen := make(map[uint64]bool)
	explore(t, u, seen)
	t.Logf("%d states", len(seen))
}

// A universe is the state of all ranks, and the messages and deaths that are on their way.
type universe struct {
	ranks  [5]*Machine
	alive  [5]bool
	ended  [5]bool        // the program has ended
	fates  [5]*Fate       // of ranks 3 and 4
	told   [5][5]bool     // by the rank that has died: the ranks that know it
	sent   [5][5][]string // from a rank to another
	deaths int            // more that may come
	chosen [2]*Membership // what ranks 0 and 1 have decided
	failed bool           // an error has ended their calls of Replace before a decision
}

func explore(t *testing.T, u *universe, seen map[uint64]bool) {
	key := fnv.New64a()
	_, _ = key.Write([]byte(u.String()))
	if seen[key.Sum64()] {
		return
	}
	seen[key.Sum64()] = true
	u.check(t)
	quiet := true
	try := func(may bool, event func(*universe)) {
		if may {
			quiet = false
			next := u.clone()
			event(next)
			explore(t, next, seen)
		}
	}
	for r := range u.ranks {
		for to := range u.ranks {
			try(u.alive[to] && len(u.sent[r][to]) > 0, func(u *universe) { u.deliver(r, to) })
			try(u.alive[to] && !u.alive[r] && r != 2 && !u.told[r][to], func(u *universe) { u.tell(r, to) })
		}
		decides := r < 2 && u.alive[r] && u.chosen[r] == nil && !u.failed
		otherwise := r == 1 && !u.alive[0]
		try(decides && !(r == 0 && u.otherwise()), func(u *universe) { u.decide(r, []int{2}) })
		try(decides && otherwise, func(u *universe) { u.decide(r, []int{0, 2}) })
		works := r < 2 || u.fates[r] != nil && u.fates[r].Membership != nil
		try(works && u.alive[r] && !u.ended[r], func(u *universe) { u.end(r) })
	}
	if quiet {
		u.checkEnd(t)
	}
	try(u.chosen[0] == nil && u.chosen[1] == nil && !u.failed, func(u *universe) { u.failed = true })
	for r := range u.ranks {
		try(u.alive[r] && u.deaths > 0, func(u *universe) {
			u.deaths--
			u.alive[r] = false
		})
	}
}

// otherwise says whether rank 1 has decided that rank 0 is dead.
func (u *universe) otherwise() bool { return u.chosen[1] != nil && len(u.chosen[1].Places) > 1 }

func (u *universe) decide(r int, dead []int) {
	next, _, _ := u.ranks[r].Successor([]int{0, 1, 2}, dead, []byte{0})
	u.chosen[r] = next
	u.ranks[r].Adopt(next)
	u.fed(r, nil)
}

func (u *universe) deliver(from, to int) {
	payload := u.sent[from][to][0]
	u.sent[from][to] = u.sent[from][to][1:]
	u.fed(to, u.ranks[to].Receive(from, []byte(payload)))
}

// tell tells a rank of a death. What the dead rank has sent and the other has not received is lost.
func (u *universe) tell(dead, to int) {
	u.told[dead][to] = true
	u.sent[dead][to] = nil
	u.fed(to, u.ranks[to].Died(dead))
}

// end ends the program of a rank.
func (u *universe) end(r int) {
	u.ended[r] = true
	u.alive[r] = !u.ranks[r].Forsaken()
	u.ranks[r].Leave()
	u.fed(r, nil)
}

// fed takes what follows from an input of a rank.
func (u *universe) fed(r int, f *Fate) {
	for m, ok := u.ranks[r].Next(); ok; m, ok = u.ranks[r].Next() {
		u.sent[r][m.To] = append(u.sent[r][m.To], string(m.Payload))
	}
	if f != nil {
		if u.fates[r] != nil {
			panic("a second fate")
		}
		if u.fates[r] = f; f.Membership == nil {
			u.end(r)
		}
	}
}

// check checks that living ranks of one communicator have the same idea of it.
func (u *universe) check(t *testing.T) {
	for r, f := range u.fates {
		if f == nil || f.Membership == nil || !u.alive[r] {
			continue
		}
		for place, member := range f.Membership.Members {
			switch {
			case !u.alive[member]:
			case f.Membership.isRescue(place):
				if other := u.fates[member]; other != nil && other.Membership != nil {
					require.Equal(t, f.Membership, other.Membership, u)
				}
			default:
				require.Equal(t, f.Membership, u.chosen[member], u)
			}
		}
	}
}

// checkEnd checks that, when nothing more happens, no rank waits: for its fate, or for a rescue.
func (u *universe) checkEnd(t *testing.T) {
	for _, r := range []int{3, 4} {
		require.False(t, u.alive[r] && u.fates[r] == nil, "rank %d waits: %v", r, u)
	}
	for r, m := range u.ranks {
		if !u.alive[r] || m.Newest().Number == 1 {
			continue
		}
		for _, other := range m.Newest().Rescues() {
			require.False(t, u.alive[other] && u.fates[other].Membership == nil, "rank %d waits for rank %d: %v", r, other, u)
		}
	}
}

func (u *universe) clone() *universe {
	c := *u
	for r, m := range u.ranks {
		n := *m
		n.greeted, n.dead, n.ended, n.offers = slices.Clone(m.greeted), maps.Clone(m.dead), maps.Clone(m.ended), make(map[string]*offer)
		for text, o := range m.offers {
			n.offers[text] = &offer{o.next, maps.Clone(o.by)}
		}
		c.ranks[r] = &n
		for to := range u.sent[r] {
			c.sent[r][to] = slices.Clone(u.sent[r][to])
		}
	}
	return &c
}

// String identifies the state.
func (u *universe) String() string {
	text := fmt.Sprint(u.alive, u.ended, u.told, u.deaths, u.failed)
	for r, m := range u.ranks {
		text += fmt.Sprintf("\n%d: waits %v, dead %v, ended %v, greeted %v, newest %q, sends %q, offers", r, m.waiting, m.dead, m.ended, m.greeted, m.newest.invitation, u.sent[r])
		for _, o := range slices.Sorted(maps.Keys(m.offers)) {
			text += fmt.Sprintf(" %q by %v", o, m.offers[o].by)
		}
	}
	return text
}
