package detector

import (
	"fmt"
	"slices"
	"time"
)

// An Output is an action of a Machine that the caller carries out: to send Message to To or, if Message
// has no kind, to tell the client that rank Died has died.
type Output struct {
	To      int
	Message Message
	Died    int // this rank itself, as the last output, if others have declared it dead
	// Minority says that Died is this rank itself because it is on a side without a majority.
	Minority bool
}

// A Machine is the protocol at one rank. It does no I/O and reads no clock: feed
// it time and messages, and carry out what Output returns after each. Times count
// from any moment, and never go back. Its methods are not safe for concurrent use.
//
// A rank that stands still sees its emitter's heartbeats late, and would accuse the emitter for its own
// fault. If a Machine is fed more than a quarter of a timeout after its Deadline, it therefore accuses no
// rank. It waits for another timeout, and its score increases: that many timeouts are added to each later
// wait. At the maximum score, 8, this ends, because a rank that is always late would otherwise detect
// nothing. The idea is from Dadgar, Phillips, Currey, "Lifeguard: Local Health
// Awareness for More Accurate Failure Detection", 2018, and memberlist's awareness.go.
type Machine struct {
	config     Config
	ring       Config // with the period and timeout of the ring
	rank, size int

	dead              runs
	silent            bool  // this rank is among the dead
	neighbours        []int // ranks to which all of dead has been sent
	emitter, observer int   // the rank before and after it in the ring; itself if it is alone

	beatAt    time.Duration // when the observer gets the next heartbeat
	suspectAt time.Duration // when the emitter is accused
	heard     bool          // the emitter was heard since this rank's last heartbeat
	score     int           // how little this rank trusts its clock

	watch *watch // nil: this rank pings nobody

	out []Output
}

// New returns the machine of one of size ranks, started now. It returns an error if an argument is
// invalid.
func New(config Config, rank, size int, now time.Duration) (*Machine, error) {
	if err := config.Check(); err != nil {
		return nil, err
	}
	if size < 1 || size > maxSize {
		return nil, fmt.Errorf("detector: %d ranks, expected 1 to %d", size, maxSize)
	}
	if rank < 0 || rank >= size {
		return nil, fmt.Errorf("detector: rank %d, expected 0 to %d", rank, size-1)
	}
	m := &Machine{config: config, ring: config.ring(), rank: rank, size: size, beatAt: now}
	m.neighbours = m.findNeighbours()
	m.emitter, m.observer = m.living(rank-1, -1), m.living(rank+1, 1)
	m.suspectAt = now + m.patience(2)
	m.takeWatch(now)
	return m, nil
}

// Output returns the outputs, in order, and forgets them. The slice is valid until the machine is fed
// again.
func (m *Machine) Output() []Output {
	out := m.out
	m.out = m.out[:0]
	return out
}

// Deadline returns when Tick is due. It may change whenever the machine is fed.
func (m *Machine) Deadline() time.Duration {
	if m.silent || m.emitter == m.rank {
		return Never
	}
	return min(m.beatAt, m.suspectAt, m.watch.deadline())
}

// Dead says whether this rank has been told that a rank is dead.
func (m *Machine) Dead(rank int) bool {
	return m.dead.has(rank, rank) || m.silent && rank == m.rank
}

// Emitter returns the rank before this one in the ring. A rank that is alone is its own.
func (m *Machine) Emitter() int { return m.emitter }

// Suspects calls f for each rank that this one observes and has not heard for half of a timeout: it declares
// the rank dead unless it hears it soon. Suspects returns the time when there may be more.
func (m *Machine) Suspects(now time.Duration, f func(rank int)) (next time.Duration) {
	if m.silent || m.emitter == m.rank {
		return Never
	}
	next = m.watch.suspects(now, f)
	if half := m.suspectAt - m.ring.Timeout/2; now < half {
		return min(next, half)
	}
	f(m.emitter)
	return next
}

// Lose notes the death of another rank, which the caller knows from elsewhere.
func (m *Machine) Lose(now time.Duration, rank int) {
	if !m.silent && rank != m.rank {
		m.learn(now, m.rank, rank, rank)
	}
}

// Tick does what is due now. Before the Deadline it does nothing.
func (m *Machine) Tick(now time.Duration) {
	m.doubt(now)
	if now < m.Deadline() {
		return
	}
	if now >= m.beatAt {
		m.beat(now)
	}
	if now >= m.suspectAt {
		m.learn(now, m.rank, m.emitter, m.emitter)
	}
	m.tickWatch(now)
}

// Step takes a message, as Decode returns it. It returns an error for one that this rank does not send.
func (m *Machine) Step(now time.Duration, from int, msg Message) error {
	if from < 0 || from >= m.size || from == m.rank {
		return fmt.Errorf("detector: %v from rank %d, expected another one of 0 to %d", msg.Kind, from, m.size-1)
	}
	if m.silent {
		return nil
	}
	m.doubt(now)
	switch {
	case !m.dead.has(from, from) && (msg.Kind == Answer || msg.Kind == Notice && msg.First <= m.rank && m.rank <= msg.Last),
		msg.Kind == Answer && !msg.side().lessThan(m.side()):
		m.silent = true
		m.out = append(m.out, Output{Died: m.rank})
	case m.dead.has(from, from):
		// Of two ranks that have declared each other dead, at least one ends: a rank on the greater
		// side that continues despite an answer answers it. A notice is not an answer: it may have
		// been under way for a long time, from a side that has become smaller since.
		m.send(from, m.side().answer())
	case msg.Kind == Notice:
		m.learn(now, from, msg.First, msg.Last)
	case msg.Kind == Heartbeat:
		m.hear(now, from)
	case msg.Kind == Ping && !m.config.Ping:
		return fmt.Errorf("detector: %v from rank %d, expected none", msg.Kind, from)
	case msg.Kind == Ping:
		m.send(from, Message{Kind: Heartbeat})
	case msg.Kind == NewObserver && from == m.observer:
		m.beat(now)
	case msg.Kind == NewObserver:
		return fmt.Errorf("detector: %v is rank %d, expected %d, the next that lives", msg.Kind, from, m.observer)
	}
	return nil
}

// hear takes a heartbeat. If it is not from the emitter, it answers a ping, or its sender already knows of
// the death of this rank's emitter, or this rank does not observe the sender any more.
func (m *Machine) hear(now time.Duration, from int) {
	if from == m.emitter {
		m.heard = true
		m.suspectAt = now + m.patience(1)
	}
	m.watch.hear(from, now, m.score)
}

// doubt notices that this rank has stood still.
func (m *Machine) doubt(now time.Duration) {
	slack := m.ring.slack()
	if m.watch != nil {
		slack = m.config.slack()
	}
	if now-m.Deadline() <= slack {
		return
	}
	m.beatAt = max(m.beatAt, now) // so it is not noticed twice
	m.heard = false               // no reason for trust
	if m.score < maxScore {
		m.score++
		m.suspectAt = max(m.suspectAt, now+m.ring.Timeout)
		m.watch.forbear(now)
	}
}

// patience returns the length of so many timeouts; longer if this rank doubts itself.
func (m *Machine) patience(timeouts int) time.Duration {
	return time.Duration(timeouts+m.score) * m.ring.Timeout
}

func (m *Machine) beat(now time.Duration) {
	m.send(m.observer, Message{Kind: Heartbeat})
	m.beatAt = now + m.ring.Period
	// This happens once a period, because many heartbeats wait for a rank that has stood still. A dead
	// emitter does not restore trust, so it is declared dead after at most maxScore graces.
	if m.heard && m.score > 0 {
		m.score--
	}
	m.heard = false
}

// learn notes deaths, and passes them on if one of them is news. Its invariant is that every neighbour has
// been sent all deaths that this rank knows.
func (m *Machine) learn(now time.Duration, from, first, last int) {
	if m.dead.has(first, last) {
		return
	}
	for r := first; r <= last; r++ {
		if m.dead.add(r) {
			m.out = append(m.out, Output{Died: r})
		}
	}
	old := m.neighbours
	m.neighbours = m.findNeighbours()
	for _, to := range old { // also to the dead among them, because one may live
		if to != from {
			m.send(to, Message{Kind: Notice, First: first, Last: last})
		}
	}
	for _, to := range m.neighbours {
		if slices.Contains(old, to) {
			continue
		}
		for _, u := range m.dead {
			m.send(to, Message{Kind: Notice, First: u.first, Last: u.last})
		}
	}
	if 2*m.dead.size() >= m.size && m.config.Quorum {
		m.silent = true
		m.out = append(m.out, Output{Died: m.rank, Minority: true})
		return
	}
	m.observer = m.living(m.rank+1, 1)
	if emitter := m.living(m.rank-1, -1); emitter != m.emitter {
		m.emitter, m.heard = emitter, false
		if emitter != m.rank {
			m.send(emitter, Message{Kind: NewObserver})
			m.suspectAt = now + m.patience(2) // > 2L: there and back
		}
	}
	m.takeWatch(now)
}

// findNeighbours returns the neighbours in the binomial graph, or the next living
// ranks beyond them.
func (m *Machine) findNeighbours() (list []int) {
	for step := 1; step < m.size; step *= 2 {
		for _, r := range [...]int{m.living(m.rank+step, 1), m.living(m.rank-step, -1)} {
			if r != m.rank && !slices.Contains(list, r) {
				list = append(list, r)
			}
		}
	}
	return list
}

// living returns the first rank from r on, in a direction, that is not dead.
func (m *Machine) living(r, direction int) int {
	for {
		r = (r + m.size) % m.size
		i, dead := m.dead.find(r)
		switch {
		case !dead:
			return r
		case direction > 0:
			r = m.dead[i].last + 1
		default:
			r = m.dead[i].first - 1
		}
	}
}

// side returns the side that this rank is on.
func (m *Machine) side() side { return side{m.size - m.dead.size(), m.living(0, 1)} }

func (m *Machine) send(to int, msg Message) {
	m.out = append(m.out, Output{To: to, Message: msg})
}
