package ledger

import (
	"slices"

	"github.com/mpicx/go-mpicx/internal/errchan"
)

// A subject is a rank with the communicator that a table is about: child, derived
// from world, with a Guard and, unless an event is about that, inside of it a Try that are running.
type subject struct {
	*testRank
	child, world *Comm
	try          *Scope
	vote         *Vote
	left         bool
	note         string // what the event has returned
}

func newSubject(tried bool) *subject {
	s := &subject{testRank: newTestRank()}
	s.world = s.make("world", nil, nil, nil)
	s.child = s.make("child", s.world, s.world, nil)
	guard := s.child.Open(nil, true, "Guard")
	if tried {
		s.try = s.child.Open(guard, false, "Try")
	}
	return s
}

func (s *subject) notice() { s.child.Noticed(s.child.round, 1, false) }

func (s *subject) fatal() { s.child.Noticed(s.child.round, 1, true) }

func (s *subject) joined() { s.notice(); s.child.join() }

func (s *subject) raise() { s.child.Raise(&Raised{Data: []byte("own")}); s.notice() }

func (s *subject) unwind() { s.child.Raise(&Raised{Data: []byte("own"), Corrupt: true}); s.notice() }

func (s *subject) settling() { s.joined(); s.resolve(s.child, false) }

func (s *subject) moving() { s.settling(); s.child.Settled() }

func (s *subject) untold() { s.moving(); s.child.Moved() }

func (s *subject) corrupted() {
	s.joined()
	s.resolve(s.child, true)
	s.child.Settled()
	s.child.Moved()
}

func (s *subject) frozen() { s.world.Noticed(0, 1, false); s.world.join() }

func (s *subject) voting() { s.vote = s.child.Ask("vote") }

func (s *subject) holding() {
	s.voting()
	s.vote.Confirm()
}

// resolve has c's round end with an error of rank 1, and those of this rank.
func (s *subject) resolve(c *Comm, corrupt bool) {
	reports := []errchan.Report{{Rank: 1, Data: []byte("peer"), Corrupt: corrupt}}
	for _, r := range c.raised {
		reports = append(reports, errchan.Report{Data: r.Data, Corrupt: r.Corrupt})
	}
	v := c.testVerdict(reports, nil)
	v.Settled = agreed
	c.Resolved(v, 0)
}

// parentEnds has a round of the world begin and end.
func (s *subject) parentEnds(corrupt bool) {
	if !s.world.open {
		s.world.Noticed(s.world.round, 1, corrupt)
	}
	s.world.join()
	s.resolve(s.world, corrupt)
	s.world.Settled()
	s.world.Moved()
}

func (s *subject) raised(corrupt bool) {
	if s.child.Raise(&Raised{Data: []byte("new"), Corrupt: corrupt}) == nil {
		s.note = "refused"
	}
}

// leave is the end of the Try's function.
func (s *subject) leave(own bool) {
	e, next := s.try.Leave(own)
	s.note = [...]string{Return: "return what it has returned", Signal: "signal", Await: "await"}[next]
	if e != nil {
		s.note = "return " + errorWord(e)
	}
}

// words are those of the child's state.
func (s *subject) words() []string {
	c := s.child
	var words []string
	add := func(yes bool, word string) {
		if yes {
			words = append(words, word)
		}
	}
	add(c.closed, "closed")
	add(c.corrupted != nil && !c.Knows(), "corrupted")
	add(c.corrupted != nil && c.Knows(), "known")
	add(c.revoking, "revoking")
	add(c.revoked && !c.revoking, "revoked")
	add(c.settling != nil, "settling")
	add(c.settling == nil && c.moving > 0, "moving")
	add(c.moving == 0 && len(c.untold) > 0, "untold")
	owed := slices.Contains(s.owed, c)
	add(owed, "noticed")
	held := slices.ContainsFunc(c.raised, func(r *Raised) bool { return slices.Contains(s.held, r) })
	switch {
	case held:
		add(true, "held")
	case len(c.raised) > 0 && c.unwound:
		add(true, "unwinding")
	case len(c.raised) > 0:
		add(true, "raised")
	case c.joined && c.settling == nil:
		add(true, "joined")
	}
	add(c.fatal, "fatal")
	add(c.losing, "losing")
	own := 0
	if c.joined {
		own = 1
	}
	add(c.frozen > own, "frozen")
	add(s.vote != nil && !s.vote.cast, "voting")
	add(s.holds > 0 && !held, "holding")
	add(s.inside.Load() != nil, "waiting")
	add(s.left, "left")
	add(s.dead, "dead")
	return words
}
