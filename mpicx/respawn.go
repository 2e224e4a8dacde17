package mpicx

import (
	"encoding/binary"
	"maps"
	"slices"
	"sync"

	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// How the members of a communicator bring fresh ranks into the one that Replace makes
// (WithRespawn). The pool then has a rank for every process that the job may ever have. The ranks
// after the workers are started when a decision needs them, in order. A rank that was not started
// is like one that is slow to begin: what is sent to it waits for it. So a member that has the
// decision of Replace makes the communicator at once, has the fresh ranks started, and invites
// each of them. All members do, so no member's death matters.
//
// A member may have decided, invited, and died, and the survivors may have decided otherwise. So a
// fresh rank accepts an invitation only when every old member of the communicator has sent the same
// one or has died, and one that has sent it lives. Members that live at the same time have the same
// decision, so those that have died later had this one, or are dead members of the communicator.
//
// Fresh ranks that a decision of the dead alone has needed are not invited. The next decision
// invites them. If none comes, they end when all ranks before them, the only ones that could invite
// them, have died or ended: each rank says so to the fresh ranks that have greeted it.

// A recruiter is one rank's part in this.
type recruiter struct {
	t      transport.Messenger
	invite func(invitation string) (*staff, error) // reads an invitation
	taken  func(*staff, error)                     // at a fresh rank: called once, with nil if it is not needed

	mu      sync.Mutex
	fresh   bool     // taken is to be called
	left    bool     // this rank's program has ended
	greeted []int    // fresh ranks to tell of that
	invited []string // by rank, of those before this one; "": none
	read    map[string]*staff
	dead    []bool // by rank, of those before this one
	ended   []bool // likewise: its program has ended
	out     []notification
}

// First bytes of a recruiter's messages.
const (
	greeting byte = 1 + iota // a fresh rank has begun
	leaving                  // the program of the sender has ended
	inviting                 // an invitation follows
)

// recruit begins this rank's part. A fresh rank calls await next.
func (l *lineage) recruit() error {
	me := l.pool.rank
	g := &recruiter{
		invite: l.readInvitation, read: make(map[string]*staff),
		invited: make([]string, me), dead: make([]bool, me), ended: make([]bool, me),
	}
	var err error
	if g.t, err = l.pool.t.Sub(transport.RecruitName(), nil); err == nil {
		l.recruiter = g
		g.t.Listen(g)
	}
	return mpiError("Run", err)
}

// await calls taken when this rank, a fresh one, is a member of a staff, or is not needed any more.
func (g *recruiter) await(taken func(*staff, error)) {
	g.mu.Lock()
	g.fresh, g.taken = true, taken
	for r := range g.dead {
		if !g.dead[r] {
			g.out = append(g.out, notification{r, []byte{greeting}})
		}
	}
	g.consider()
	g.t.Poke()
}

// leave says that this rank's program has ended.
func (g *recruiter) leave() {
	g.mu.Lock()
	g.left = true
	for _, r := range g.greeted {
		g.out = append(g.out, notification{r, []byte{leaving}})
	}
	g.greeted = nil
	g.mu.Unlock()
	g.t.Poke()
}

// send sends an invitation to fresh ranks.
func (g *recruiter) send(invitation string, to []int) {
	g.mu.Lock()
	for _, r := range to {
		g.out = append(g.out, notification{r, append([]byte{inviting}, invitation...)})
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
	switch before := from < len(g.dead); {
	case payload[0] == greeting && g.left:
		g.out = append(g.out, notification{from, []byte{leaving}})
	case payload[0] == greeting:
		g.greeted = append(g.greeted, from)
	case payload[0] == leaving && before:
		g.ended[from] = true
	case payload[0] == inviting && before:
		g.invited[from] = string(payload[1:])
	}
	g.consider()
	g.t.Poke()
}

// Died notes that a rank has died.
func (g *recruiter) Died(rank int) {
	g.mu.Lock()
	if rank < len(g.dead) {
		g.dead[rank] = true
	}
	if rank == len(g.dead) && g.fresh { // this one
		g.fresh = false
		g.mu.Unlock()
		g.taken(nil, transport.ErrDied)
		return
	}
	g.consider()
}

// consider calls taken if this is a fresh rank and its fate is known. It unlocks mu.
func (g *recruiter) consider() {
	s, err, known := g.fate()
	g.fresh = g.fresh && !known
	g.mu.Unlock()
	if known {
		g.taken(s, err)
	}
}

// fate returns what is known of this rank's fate: its staff, or nil if it is not needed.
func (g *recruiter) fate() (s *staff, err error, known bool) {
	if !g.fresh {
		return nil, nil, false
	}
	over := true // no rank will invite this one
	for r, invitation := range g.invited {
		switch {
		case g.dead[r]:
		case invitation == "":
			over = over && g.ended[r]
		default:
			over = false
			if s, err = g.staffOf(invitation); err != nil {
				return nil, err, true
			}
			agree := func(old int) bool {
				return old >= len(g.dead) || g.dead[old] || g.invited[old] == invitation
			}
			if !slices.ContainsFunc(s.old, func(old int) bool { return !agree(old) }) {
				return s, nil, true
			}
		}
	}
	return nil, nil, over
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

// Next returns the next message.
func (g *recruiter) Next() (to int, payload []byte, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.out) == 0 {
		return 0, nil, false
	}
	n := g.out[0]
	g.out = slices.Delete(g.out, 0, 1)
	return n.to, n.payload, true
}

// Purpose names the purpose of the messages.
func (g *recruiter) Purpose([]byte) string { return "replace" }

// A renewal is what a decision of Replace means where there are fresh ranks. The ranks of a
// process share it.
type renewal struct {
	*staff
	invitation string
}

// renew makes the communicator in which fresh ranks take the places of the dead. d is the decision
// of c's members.
func (l *lineage) renew(c *Comm, now succession, d *errchan.Decision) (*Comm, error) {
	r := d.Meaning(func(d *errchan.Decision) any {
		invitation := invitation(now.note(c.depth, c.worldRanks), c.worldRanksOf(d.Dead))
		s, err := l.readInvitation(invitation)
		if err != nil {
			s = &staff{err: err}
		}
		return renewal{s, invitation}
	}).(renewal)
	made, err := l.join(r.staff, uint64(r.line))
	if r.err == nil {
		fresh := make([]int, len(r.replaced))
		for i, place := range r.replaced {
			fresh[i] = r.members[place]
			l.start(fresh[i])
		}
		l.recruiter.send(r.invitation, fresh)
	}
	return made, err
}

// invitation returns an invitation: the length of a note and the note, and the ranks of the job that
// the decision counts as dead.
func invitation(note []byte, dead []int) string {
	b := append(binary.AppendUvarint(nil, uint64(len(note))), note...)
	b = binary.AppendUvarint(b, uint64(len(dead)))
	for _, r := range dead {
		b = binary.AppendUvarint(b, uint64(r))
	}
	return string(b)
}

// readInvitation returns the staff that an invitation means.
func (l *lineage) readInvitation(text string) (*staff, error) {
	size := l.pool.size
	d := errchan.NewReader([]byte(text))
	note := d.Bytes()
	dead := make(map[int]bool)
	for range d.Below(size+1, "number of the dead") {
		dead[d.Below(size, "rank")] = true
	}
	if err := d.End(); err != nil {
		return nil, mpiErrorf("Replace", ClassOther, "an invitation of %d bytes: %v", len(text), err)
	}
	was, members, err := readNote(note, size)
	if err != nil {
		return nil, mpiError("Replace", err)
	}
	first := len(l.workers) + was.used
	if known := slices.Collect(maps.Keys(was.taken)); len(members) == 0 || first > size || slices.ContainsFunc(slices.Concat(members, known), func(r int) bool { return r >= first }) {
		return nil, mpiErrorf("Replace", ClassOther, "an invitation of members %v, %d of whom were fresh, of %d ranks", members, was.used, size)
	}
	spares := make([]int, size-first)
	for i := range spares {
		spares[i] = first + i
	}
	return was.staff(members, func(r int) bool { return dead[r] }, spares), nil
}
