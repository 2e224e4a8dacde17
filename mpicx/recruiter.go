package mpicx

import (
	"slices"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// A recruiter is one rank's part in inviting fresh ranks: respawn.go has the protocol.
type recruiter struct {
	t      transport.Messenger
	rank   int
	invite func(invitation string) (*staff, error) // reads an invitation
	taken  func(*staff, error)                     // at a fresh rank: called once, with nil if it is not needed
	// abandoned is the error of a fresh rank that is not needed because all ranks before it have died.
	abandoned func(before []int) error

	outbox
	fresh    bool              // taken is to be called
	unneeded bool              // taken was called with nil: this rank is not needed
	left     bool              // this rank's program has ended
	greeted  []int             // fresh ranks that are to be told of that
	invited  []string          // by rank, what it has sent; "": nothing
	read     map[string]*staff // by invitation
	dead     []bool            // by rank
	ended    []bool            // by rank: its program has ended
}

// First bytes of a recruiter's messages.
const (
	greeting byte = 1 + iota // a fresh rank has begun
	leaving                  // the program of the sender has ended
	inviting                 // an invitation follows
)

func newRecruiter(rank, size int, invite func(string) (*staff, error)) *recruiter {
	return &recruiter{
		rank: rank, invite: invite, read: make(map[string]*staff),
		invited: make([]string, size), dead: make([]bool, size), ended: make([]bool, size),
	}
}

// await calls taken when this rank, a fresh one, is a member of a staff, or is not needed any more.
func (g *recruiter) await(taken func(*staff, error)) {
	g.mu.Lock()
	g.fresh, g.taken = true, taken
	for r := range g.rank {
		if !g.dead[r] {
			g.push(r, greeting)
		}
	}
	g.consider()
	g.t.Poke()
}

// leave tells fresh ranks that this rank's program has ended.
func (g *recruiter) leave() {
	g.mu.Lock()
	g.left = true
	for _, r := range g.greeted {
		g.push(r, leaving)
	}
	g.greeted = nil
	g.mu.Unlock()
	g.t.Poke()
}

// send invites the other fresh ranks of a staff.
func (g *recruiter) send(s *staff) {
	g.mu.Lock()
	for _, r := range s.fresh() {
		if r != g.rank {
			g.push(r, append([]byte{inviting}, s.invitation...)...)
		}
	}
	g.mu.Unlock()
	g.t.Poke()
}

// Take takes a message.
func (g *recruiter) Take(from int, payload []byte) {
	if len(payload) == 0 {
		return
	}
	g.mu.Lock()
	switch {
	case payload[0] == greeting && g.left:
		g.push(from, leaving)
	case payload[0] == greeting:
		g.greeted = append(g.greeted, from)
	case payload[0] == leaving:
		g.ended[from] = true
	case payload[0] == inviting:
		g.invited[from] = string(payload[1:])
	}
	g.consider()
	g.t.Poke()
}

// Died notes that a rank has died.
func (g *recruiter) Died(rank int) {
	g.mu.Lock()
	g.dead[rank] = true
	if rank == g.rank && g.fresh {
		g.fresh = false
		g.mu.Unlock()
		g.taken(nil, transport.ErrDied)
		return
	}
	g.consider()
}

// consider calls taken if this is a fresh rank and it is known what becomes of it. It unlocks mu.
func (g *recruiter) consider() {
	s, known, err := g.decide()
	g.fresh = g.fresh && !known
	g.unneeded = g.unneeded || known && s == nil
	g.mu.Unlock()
	if known {
		g.taken(s, err)
	}
}

// isForsaken says whether this rank is not needed, and ranks before it have died.
func (g *recruiter) isForsaken() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.unneeded && slices.Contains(g.dead[:g.rank], true)
}

// decide returns this rank's staff, or nil if it is not needed, once that is known.
func (g *recruiter) decide() (s *staff, known bool, err error) {
	if !g.fresh {
		return nil, false, nil
	}
	over := true // no rank will invite this one
	var dead []int
	for r, invitation := range g.invited {
		switch {
		case g.dead[r]:
			if r < g.rank && !g.ended[r] {
				dead = append(dead, r)
			}
		case invitation == "":
			over = over && (r >= g.rank || g.ended[r])
		default:
			over = false
			if s, err = g.staffOf(invitation); err != nil {
				return nil, true, err
			}
			agree := func(old int) bool {
				return g.dead[old] || g.invited[old] == invitation
			}
			if !slices.ContainsFunc(s.old, func(old int) bool { return !agree(old) }) {
				return s, true, nil
			}
		}
	}
	if over && len(dead) == g.rank {
		err = g.abandoned(dead)
	}
	return nil, over, err
}

// staffOf returns the staff that an invitation to this rank means.
func (g *recruiter) staffOf(invitation string) (*staff, error) {
	s := g.read[invitation]
	if s == nil {
		var err error
		if s, err = g.invite(invitation); err != nil {
			return nil, err
		}
		g.read[invitation] = s
	}
	return s, nil
}

// Purpose names the purpose of the messages.
func (g *recruiter) Purpose([]byte) string { return "replace" }
