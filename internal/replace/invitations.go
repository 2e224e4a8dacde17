package replace

import (
	"errors"
	"slices"

	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/wire"
)

// A Machine is the protocol at one rank. It has no I/O and no clock. The caller feeds it with
// decisions (Adopt), messages (Receive), deaths (Died) and the end of the rank's program (Leave),
// and sends what Next returns. At a rank that waits to be invited, the caller also calls Wait; the
// first call after it that returns a Fate ends the wait. Its methods are not safe for concurrent
// use. Ranks are those of the pool.
type Machine struct {
	rank, size, workers int
	newest              *Membership // the one that this rank has adopted last; at first, the world's
	waiting             bool        // this rank waits for its fate
	over                bool        // this rank's program has ended
	failed              error       // why this rank can't take a place any more
	greeted             []int       // the ranks that this rank tells when its program ends

	dead  map[int]bool // the ranks that have died
	ended map[int]bool // the ranks before this one that have said that their programs have ended
	// worked says that the program of one of these had a place.
	worked bool
	offers map[string]*offer // by invitation; those that a living rank has sent
	out    errchan.Queue[Message]
}

// An offer is an invitation that this rank has received. Of each living rank the last one counts.
type offer struct {
	next *Membership
	by   map[int]bool // the living ranks that have sent it
}

// A Message is to be sent to a rank.
type Message struct {
	To      int
	Payload []byte
}

// A Fate is what becomes of a rank that waits.
type Fate struct {
	Membership *Membership // the rank is a member; nil: it is not needed, or there is an error
	// Err is ErrAlone, the error of Fail, or says that an invitation can't be read.
	Err error
}

// ErrAlone is the error of a rank that is not needed because all ranks before it that had a place
// have died.
var ErrAlone = errors.New("all ranks before this one that had a place have died")

// The first byte of a message.
const (
	greeting byte = 1 + iota // the sender waits
	leaving                  // the program of the sender has ended, which had a place
	unneeded                 // the sender has never had a place, and has ended
	inviting                 // an invitation follows
)

// New returns the machine of one of size ranks, of which the first workers begin in the world.
func New(rank, size, workers int) *Machine {
	return &Machine{rank: rank, size: size, workers: workers, newest: world(workers)}
}

// listen makes what the machine notes of other ranks. Where there are no spares it hears of none.
func (m *Machine) listen() {
	if m.dead == nil {
		m.dead, m.ended, m.offers = make(map[int]bool), make(map[int]bool), make(map[string]*offer)
	}
}

// Newest returns the membership that this rank has adopted last.
func (m *Machine) Newest() *Membership { return m.newest }

// Lost returns the note of this rank's proposal to Replace: the ranks that have died before they
// were needed.
func (m *Machine) Lost() []byte {
	var lost []int
	for r := range m.dead {
		if r >= m.newest.next {
			lost = append(lost, r)
		}
	}
	slices.Sort(lost)
	return wire.AppendRanks(nil, lost)
}

// Successor returns the membership in which the first ranks that wait take the places of the dead
// of members, which are ranks in the pool. Dead are indices of members, ascending. The note, of one
// of the proposals, says which ranks can't take a place. The membership is nil if too few ranks are
// left; there are left of them.
func (m *Machine) Successor(members, dead []int, note []byte) (next *Membership, left int, err error) {
	d := wire.NewReader(note)
	lost := d.Ranks(m.size)
	if err := d.End(); err != nil {
		return nil, 0, err
	}
	var rescues []int
	for r := m.newest.next; r < m.size; r++ {
		if _, found := slices.BinarySearch(lost, r); !found {
			rescues = append(rescues, r)
		}
	}
	if len(dead) > len(rescues) {
		return nil, len(rescues), nil
	}
	return m.newest.follow(members, dead, rescues), len(rescues), nil
}

// Adopt makes a membership the newest, and invites its rescues.
func (m *Machine) Adopt(next *Membership) {
	m.newest = next
	for _, r := range next.Rescues() {
		if r != m.rank {
			m.send(r, inviting, next.invitation)
		}
	}
}

// Wait begins the wait of this rank.
func (m *Machine) Wait() *Fate {
	m.waiting = true
	for r := range m.rank {
		if !m.dead[r] {
			m.send(r, greeting, "")
		}
	}
	return m.fate()
}

// Leave notes that this rank's program has ended.
func (m *Machine) Leave() {
	m.over = true
	for _, r := range m.greeted {
		m.send(r, m.farewell(), "")
	}
	m.greeted = nil
}

// farewell is the message of a rank whose program has ended.
func (m *Machine) farewell() byte {
	if m.rank >= m.workers && m.newest.Number == 1 {
		return unneeded
	}
	return leaving
}

// Forsaken says whether this rank, which was never given a place, ends while a rank before it has
// not announced its own end. That rank may have died after it had made this one a member of a
// communicator of which only other rescues know. This rank then counts as dead, so that they do not
// wait for it there.
func (m *Machine) Forsaken() bool {
	return m.farewell() == unneeded && len(m.ended) < m.rank
}

// Receive takes a message.
func (m *Machine) Receive(from int, payload []byte) *Fate {
	m.listen()
	if len(payload) == 0 {
		return nil
	}
	switch kind, text := payload[0], string(payload[1:]); {
	case kind == greeting && m.over:
		m.send(from, m.farewell(), "")
	case kind == greeting:
		m.greeted = append(m.greeted, from)
	case (kind == leaving || kind == unneeded) && from < m.rank && !m.ended[from]:
		m.ended[from] = true
		m.worked = m.worked || kind == leaving
	case kind == inviting && !m.dead[from]:
		m.forget(from)
		if m.offers[text] == nil {
			next, err := readInvitation(text, m.rank, m.size)
			if err != nil {
				return m.Fail(err)
			}
			m.offers[text] = &offer{next, make(map[int]bool)}
		}
		m.offers[text].by[from] = true
	}
	return m.fate()
}

// Died notes that a rank has died.
func (m *Machine) Died(rank int) *Fate {
	m.listen()
	if m.dead[rank] {
		return nil
	}
	m.forget(rank)
	m.dead[rank] = true
	return m.fate()
}

// before says whether all ranks before this one have ended or died, so that none can invite it any
// more, and whether one of them has died and not ended.
func (m *Machine) before() (gone, lost bool) {
	if len(m.ended)+len(m.dead) < m.rank { // as most of the time
		return false, false
	}
	for r := range m.rank {
		if !m.ended[r] && !m.dead[r] {
			return false, false
		}
		lost = lost || !m.ended[r]
	}
	return true, lost
}

// forget drops the offer of a rank.
func (m *Machine) forget(rank int) {
	for text, o := range m.offers {
		if delete(o.by, rank); len(o.by) == 0 {
			delete(m.offers, text)
		}
	}
}

// Fail notes that this rank itself can't take a place any more.
func (m *Machine) Fail(err error) *Fate {
	m.failed = err
	return m.fate()
}

// fate returns what becomes of this rank if it waits and that is decided now.
func (m *Machine) fate() *Fate {
	if !m.waiting {
		return nil
	}
	f := m.decide()
	if f != nil {
		m.waiting = false
		if f.Membership != nil {
			m.Adopt(f.Membership)
		}
	}
	return f
}

func (m *Machine) decide() *Fate {
	if m.failed != nil {
		return &Fate{Err: m.failed}
	}
	for _, o := range m.offers {
		if m.accepts(o) {
			return &Fate{Membership: o.next}
		}
	}
	switch gone, lost := m.before(); {
	case !gone || len(m.offers) > 0:
		return nil
	case lost && !m.worked:
		return &Fate{Err: ErrAlone}
	}
	return &Fate{}
}

// accepts says whether every member before this rank has sent the offer or has died. One that has
// sent it lives, otherwise forget has dropped the offer.
func (m *Machine) accepts(o *offer) bool {
	return !slices.ContainsFunc(o.next.Members, func(r int) bool { return r < m.rank && !m.dead[r] && !o.by[r] })
}

func (m *Machine) send(to int, kind byte, text string) {
	m.out.Push(Message{to, append([]byte{kind}, text...)})
}

// Next returns the next message to send, and whether there is one.
func (m *Machine) Next() (Message, bool) { return m.out.Pop() }
