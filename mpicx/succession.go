package mpicx

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"sync"

	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/wire"
)

// A succession records which communicators Replace has made from the world so far. It is the same
// at all members of the newest of them.
type succession struct {
	line  int         // number of communicators so far, including the world
	used  int         // number of spares, or fresh ranks, that were taken so far
	taken map[int]int // a member's incarnation, by its rank in the job; 0 is left out
}

// name returns the name of the newest communicator.
func (s succession) name() string { return fmt.Sprintf("world.replace%d", s.line-1) }

// note returns the note of a proposal to Replace. It describes, for the spares that are taken, the
// communicator to be replaced, which has the given members and was made by depth Shrinks from the
// newest communicator of the succession:
//
//	line, depth     4 bytes each, the most significant first: the later of two notes is greater
//	used
//	members         as runs
//	taken           the number of entries, then each rank and its incarnation, ascending
func (s succession) note(depth int, members []int) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(s.line))
	b = binary.BigEndian.AppendUint32(b, uint32(depth))
	b = binary.AppendUvarint(b, uint64(s.used))
	b = wire.AppendRuns(b, members)
	n, pairs := 0, []byte(nil)
	for _, r := range slices.Sorted(maps.Keys(s.taken)) {
		if slices.Contains(members, r) {
			n++
			pairs = binary.AppendUvarint(binary.AppendUvarint(pairs, uint64(r)), uint64(s.taken[r]))
		}
	}
	return append(binary.AppendUvarint(b, uint64(n)), pairs...)
}

// readNote reads a note: the succession, without its depth, and the members. The job has size
// ranks.
func readNote(b []byte, size int) (s succession, members []int, err error) {
	d := wire.NewReader(b)
	var head [8]byte
	for i := range head {
		head[i] = d.Byte()
	}
	s = succession{int(binary.BigEndian.Uint32(head[:])), d.Below(size+1, "number of fresh ranks"), make(map[int]int)}
	members = d.Runs(size)
	for range d.Below(size+1, "number of places") {
		r := d.Below(size, "rank")
		s.taken[r] = int(d.Uvarint())
	}
	if err := d.End(); err != nil {
		return succession{}, nil, fmt.Errorf("note of Replace, %d bytes: %w", len(b), err)
	}
	return s, members, nil
}

// A staff describes a communicator that Replace makes: its members, and the places that new ranks
// take. It does not change once it is made; the ranks of a process share it.
type staff struct {
	succession
	members  []int  // ranks in the pool
	replaced []int  // ranks in the communicator that are new
	old      []int  // the other members: ranks in the pool
	digest   uint64 // of the members
	// invitation is the text from which a fresh rank computes this staff. It is empty in a job
	// with spares.
	invitation string
	err        error // why the communicator can't be made; the other fields are then unused
}

// fresh returns the new members: ranks in the pool.
func (s *staff) fresh() []int {
	fresh := make([]int, len(s.replaced))
	for i, place := range s.replaced {
		fresh[i] = s.members[place]
	}
	return fresh
}

// staff returns the staff in which the first spares take the places of the dead members. It
// overwrites those places in members, which becomes part of the staff.
func (s succession) staff(members []int, isDead func(int) bool, spares []int) *staff {
	next := &staff{succession: succession{line: s.line + 1, taken: make(map[int]int)}, members: members}
	for place, r := range members {
		if isDead(r) {
			next.replaced = append(next.replaced, place)
		} else {
			next.old = append(next.old, r)
		}
	}
	next.used = s.used + len(next.replaced)
	if len(next.replaced) > len(spares) || len(next.replaced) == len(members) {
		return &staff{err: &SpareError{Places: next.replaced, Spares: len(spares)}}
	}
	for i, place := range next.replaced {
		next.taken[spares[i]] = s.taken[members[place]] + 1
		members[place] = spares[i]
	}
	digest := fnv.New64a()
	for _, r := range members {
		if n := s.taken[r]; n > 0 {
			next.taken[r] = n
		}
		fmt.Fprintln(digest, r)
	}
	next.digest = digest.Sum64()
	return next
}

// turns orders the second parts of calls that have two parts. The first parts may end in any
// order. The second parts begin in the order of the calls, each after the end of the one before.
// The order is therefore the same at all ranks.
type turns struct {
	mu      sync.Mutex        // protects the fields; not held while a function of waiting runs
	last    uint64            // the last turn that was taken; the first is 1
	over    uint64            // all turns up to this one have ended
	waiting map[uint64]func() // by turn, the function to call when all earlier turns have ended
}

// take returns the next turn. The caller ends it exactly once.
func (t *turns) take() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last++
	return t.last
}

// await calls f when all turns before this one have ended: at once, or later in the goroutine that
// ends the last of them.
func (t *turns) await(turn uint64, f func()) {
	t.mu.Lock()
	if turn == t.over+1 {
		t.mu.Unlock()
		f()
		return
	}
	defer t.mu.Unlock()
	if t.waiting == nil {
		t.waiting = make(map[uint64]func())
	}
	t.waiting[turn] = f
}

// end ends a turn. If earlier turns have not ended, the turn ends after them.
func (t *turns) end(turn uint64) { t.await(turn, t.next) }

// next ends the turn whose time it is, and calls the function that waits for the next one.
func (t *turns) next() {
	t.mu.Lock()
	t.over++
	f := t.waiting[t.over+1]
	delete(t.waiting, t.over+1)
	t.mu.Unlock()
	if f != nil {
		f()
	}
}

// A recruiter is one rank's part in inviting fresh ranks. The comment before recruit, in
// replace.go, describes the protocol. Ranks are those of the pool.
type recruiter struct {
	// These fields do not change after the recruiter has begun to listen, except that await sets
	// taken.

	t      transport.Messenger
	rank   int
	invite func(invitation string) (*staff, error) // reads an invitation
	// taken is called once, at a fresh rank, without mu: with its staff, with nil if the rank is
	// not needed, or with an error.
	taken func(*staff, error)
	// abandoned returns the error of a fresh rank that is not needed because all ranks before it
	// have died.
	abandoned func(before []int) error

	outbox                     // its mu protects the following fields
	fresh    bool              // this is a fresh rank, and taken was not called yet
	unneeded bool              // taken was called with nil: this rank is not needed
	left     bool              // this rank's program has ended
	greeted  []int             // the fresh ranks that this rank tells when its program ends
	invited  []string          // by rank, the last invitation that it has sent to this rank; "": none
	read     map[string]*staff // by invitation, the staff that invite has returned for it
	dead     []bool            // by rank: it has died
	ended    []bool            // by rank: it has said that its program has ended
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

// await is called at a fresh rank. It has taken called when the rank is a member of a staff, or is
// not needed any more. It greets the ranks before this one, which may invite it.
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

// leave tells the fresh ranks that have greeted this one that its program has ended.
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

// Take receives a message.
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

// consider calls taken if this is a fresh rank whose part is now decided. The caller holds mu, and
// consider releases it.
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

// decide returns this fresh rank's staff, or nil if the rank is not needed. known says whether that
// is decided yet. decide also returns an error if an invitation can't be read, or if all ranks that
// could have invited this one have died. The caller holds mu.
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

// staffOf returns the staff that an invitation describes. The caller holds mu.
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
