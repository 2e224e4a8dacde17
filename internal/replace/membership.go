package replace

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"sync/atomic"

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

// latest is the last world of this process.
var latest atomic.Pointer[Membership]

// world returns the membership of a world of that many ranks.
func world(ranks int) *Membership {
	m := latest.Load()
	if m == nil || m.next != ranks {
		m = &Membership{Number: 1, next: ranks}
		latest.Store(m)
	}
	return m
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

// encode returns the invitation: the Number, next, the number of runs and, for each run, its first
// rank, its length, and twice the incarnation, plus 1 for rescues. A run is of consecutive ranks
// that have the latter in common. All numbers are varints.
func (m *Membership) encode() string {
	kind := func(place int) int {
		k := 2 * m.incarnations[m.Members[place]]
		if m.isRescue(place) {
			k++
		}
		return k
	}
	var runs []byte
	n := 0
	for i := 0; i < len(m.Members); n++ {
		first := i
		for i++; i < len(m.Members) && m.Members[i] == m.Members[i-1]+1 && kind(i) == kind(first); i++ {
		}
		for _, v := range [...]int{m.Members[first], i - first, kind(first)} {
			runs = binary.AppendUvarint(runs, uint64(v))
		}
	}
	b := binary.AppendUvarint(nil, uint64(m.Number))
	b = binary.AppendUvarint(b, uint64(m.next))
	return string(append(binary.AppendUvarint(b, uint64(n)), runs...))
}

// readInvitation returns the membership that an invitation of the given rank describes. The pool
// has size ranks.
func readInvitation(text string, rank, size int) (*Membership, error) {
	d := wire.NewReader([]byte(text))
	m := &Membership{Number: int(d.Uvarint()), next: d.Below(size+1, "number of ranks"), incarnations: make(map[int]int), invitation: text}
	known := make(map[int]bool)
	for range d.Below(size+1, "number of runs") {
		first := d.Below(m.next, "rank")
		length := d.Below(m.next-first+1, "number of ranks")
		kind := int(d.Uvarint())
		for r := first; r < first+length; r++ {
			if known[r] {
				d.Fail(fmt.Errorf("rank %d is a member twice", r))
			}
			known[r] = true
			if kind%2 > 0 {
				m.Places = append(m.Places, len(m.Members))
			}
			if kind > 1 {
				m.incarnations[r] = kind / 2
			}
			m.Members = append(m.Members, r)
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
