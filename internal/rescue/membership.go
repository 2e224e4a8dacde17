package rescue

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/mpicx/go-mpicx/internal/wire"
)

// A Membership describes the world, or a communicator that Replace makes. It is the same at all its
// members, and does not change once it is made; the ranks of a process share it.
type Membership struct {
	Number  int   // 1 is the world, 2 the first communicator that Replace makes, and so on
	Members []int // ranks in the pool; nil for the world
	// Places are the ranks in the communicator of the members that were not in the one before,
	// ascending.
	Places []int
	// incarnations says how often the place of a member has been taken over, by its rank in the
	// pool; 0 is left out.
	incarnations map[int]int
	next         int    // the first rank in the pool that has never been needed
	invitation   string // the text that readInvitation reads
}

// Name returns the name of the communicator.
func (m *Membership) Name() string { return fmt.Sprintf("world.replace%d", m.Number-1) }

// Incarnation returns how often the place of a member, a rank in the pool, has been taken over.
func (m *Membership) Incarnation(rank int) int { return m.incarnations[rank] }

// Digest distinguishes the membership from others with the same Number: ranks that have died may
// have known another one.
func (m *Membership) Digest() uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(m.invitation))
	return h.Sum64()
}

// Rescues returns the members that were not in the communicator before: ranks in the pool,
// ascending.
func (m *Membership) Rescues() []int {
	rescues := make([]int, len(m.Places))
	for i, place := range m.Places {
		rescues[i] = m.Members[place]
	}
	return rescues
}

func (m *Membership) isRescue(place int) bool {
	_, found := slices.BinarySearch(m.Places, place)
	return found
}

// follow returns the membership after m, in which rescues take the places of the dead of members.
// Dead are indices of members, ascending.
func (m *Membership) follow(members, dead, rescues []int) *Membership {
	next := &Membership{Number: m.Number + 1, Members: slices.Clone(members), Places: dead, next: m.next, incarnations: make(map[int]int)}
	for i, place := range dead {
		next.Members[place] = rescues[i]
		next.incarnations[rescues[i]] = m.incarnations[members[place]] + 1
		next.next = rescues[i] + 1
	}
	for _, r := range next.Members {
		if n := m.incarnations[r]; n > 0 {
			next.incarnations[r] = n
		}
	}
	next.invitation = next.encode()
	return next
}

// encode returns the invitation: the Number, next, the number of members and, for each, its rank
// and twice its incarnation, plus 1 for rescues. All numbers are varints.
func (m *Membership) encode() string {
	b := binary.AppendUvarint(nil, uint64(m.Number))
	b = binary.AppendUvarint(b, uint64(m.next))
	b = binary.AppendUvarint(b, uint64(len(m.Members)))
	for place, r := range m.Members {
		kind := 2 * m.incarnations[r]
		if m.isRescue(place) {
			kind++
		}
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(r)), uint64(kind))
	}
	return string(b)
}

// readInvitation returns the membership that an invitation of the given rank describes. The pool
// has size ranks.
func readInvitation(text string, rank, size int) (*Membership, error) {
	d := wire.NewReader([]byte(text))
	m := &Membership{Number: int(d.Uvarint()), next: d.Below(size+1, "number of ranks"), incarnations: make(map[int]int), invitation: text}
	known := make(map[int]bool)
	for place := range d.Below(size+1, "number of members") {
		r, kind := d.Below(m.next, "rank"), int(d.Uvarint())
		if known[r] {
			d.Fail(fmt.Errorf("rank %d is a member twice", r))
		}
		known[r] = true
		m.Members = append(m.Members, r)
		if kind%2 > 0 {
			m.Places = append(m.Places, place)
		}
		if kind > 1 {
			m.incarnations[r] = kind / 2
		}
	}
	err := d.End()
	switch {
	case err != nil:
	case !known[rank]:
		err = fmt.Errorf("rank %d is not one of the members %v", rank, m.Members)
	case len(m.Places) == len(m.Members):
		err = errors.New("no member was one before")
	default:
		return m, nil
	}
	return nil, fmt.Errorf("an invitation of %d bytes: %w", len(text), err)
}
