package detector

import (
	"fmt"
	"slices"
	"time"
)

// An Output is an action that a Machine asks its caller to carry out: to send Message to rank To
// or, if the message's Kind is 0, to tell the client that rank Died has died.
type Output struct {
	To      int
	Message Message
	// Died is this rank itself, in the last output of all, if the rank falls silent because
	// others have declared it dead, or because of Minority.
	Died int
	// Minority says that Died is this rank itself, because its side has no majority
	// (Config.Quorum).
	Minority bool
}

// A Machine is the protocol at one rank. It does no I/O and reads no clock: feed it time and
// messages by New, Tick, Step and Lose, and carry out what Output returns after each. Times are
// measured from any fixed moment, and must not decrease. The methods are not safe for concurrent
// use.
//
// A rank that stands still handles its emitter's heartbeats late, and would accuse the emitter of
// its own fault. If a Machine is fed more than a quarter of a timeout after its Deadline, it
// therefore accuses no rank. It waits for another timeout, and increases its score by 1. Each
// later wait is longer by as many timeouts as the score says. At the maximum score, 8, a late rank
// accuses again, because a rank that is always late would otherwise detect nothing. The idea is
// from Dadgar, Phillips, Currey, "Lifeguard: Local Health Awareness for More Accurate Failure
// Detection", 2018, and memberlist's awareness.go.
type Machine struct {
	config     Config
	ring       Config // config with the period and timeout of the ring
	rank, size int

	// dead are the ranks that this one knows to be dead, except itself. A dead rank never returns.
	dead runs
	// silent says that this rank has been declared dead, or has no quorum. It then ignores all
	// messages and sends none, and stays silent.
	silent bool
	// neighbours are the living neighbours of this rank in the binomial graph. Each of them has
	// been sent all of dead, except the deaths that this rank has learned from it.
	neighbours []int
	// emitter is the living rank before this one in the ring, observer the one after it. Both are
	// this rank itself if no other rank lives.
	emitter, observer int

	beatAt    time.Duration // when this rank sends its next heartbeat
	suspectAt time.Duration // when it declares the emitter dead, unless it hears it before
	heard     bool          // it has heard the emitter since its last heartbeat
	score     int           // the timeouts that are added to each wait, 0 to maxScore

	watch watch

	out []Output // not yet returned by Output
}

// New returns the Machine of one of size ranks, started now. It returns an error if an argument is
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
	m := &Machine{config: config, ring: config.ring(), rank: rank, size: size, beatAt: now, watch: watch{pingAt: Never, lookAt: Never}}
	m.neighbours = m.findNeighbours()
	m.emitter, m.observer = m.living(rank-1, -1), m.living(rank+1, 1)
	m.suspectAt = now + m.patience(2)
	m.takeWatch(now)
	return m, nil
}

// Output returns the outputs since the last call of Output, in order. The slice is valid until the
// machine is fed again.
func (m *Machine) Output() []Output {
	out := m.out
	m.out = m.out[:0]
	return out
}

// Deadline returns when Tick is due, or Never. It may change whenever the machine is fed.
func (m *Machine) Deadline() time.Duration {
	if m.silent || m.emitter == m.rank {
		return Never
	}
	return min(m.beatAt, m.suspectAt, m.watch.pingAt, m.watch.lookAt)
}

// Emitter returns the rank that this one observes: the living rank before it in the ring. If no
// other rank lives, it is this rank itself.
func (m *Machine) Emitter() int { return m.emitter }

// Suspects calls f for each rank that this one will declare dead in half a timeout or less, unless
// it hears from it before. It returns the time at which there may be more suspects.
func (m *Machine) Suspects(now time.Duration, f func(rank int)) (next time.Duration) {
	if m.silent || m.emitter == m.rank {
		return Never
	}
	next = m.watched(now, f)
	if half := m.suspectAt - m.ring.Timeout/2; now < half {
		return min(next, half)
	}
	f(m.emitter)
	return next
}

// Lose notes the death of another rank that the caller has learned of elsewhere.
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

// Step handles a message from another rank, as Decode returns it. It returns an error if no rank
// that runs this protocol sends such a message.
func (m *Machine) Step(now time.Duration, from int, msg Message) error {
	if from < 0 || from >= m.size || from == m.rank {
		return fmt.Errorf("detector: %v from rank %d, expected another one of 0 to %d", msg.Kind, from, m.size-1)
	}
	if m.silent {
		return nil
	}
	m.doubt(now)
	switch {
	case !m.dead.has(from, from) && (msg.Kind == answer || msg.Kind == Notice && msg.first <= m.rank && m.rank <= msg.last),
		msg.Kind == answer && !msg.side().lessThan(m.side()):
		m.silent = true
		m.out = append(m.out, Output{Died: m.rank})
	case m.dead.has(from, from):
		// Of two ranks that have declared each other dead, at least one falls silent. A rank on the
		// larger side that gets an answer does not obey it, but sends one itself. A Notice
		// does not decide this: it may have been under way for a long time, and its side may have
		// become smaller since.
		m.send(from, m.side().answer())
	case msg.Kind == Notice:
		m.learn(now, from, msg.first, msg.last)
	case msg.Kind == Heartbeat:
		m.hear(now, from)
	case msg.Kind == Ping && !m.config.Ping:
		return fmt.Errorf("detector: %v from rank %d, expected none", msg.Kind, from)
	case msg.Kind == Ping:
		m.send(from, Message{Kind: Heartbeat})
	case msg.Kind == newObserver && from == m.observer:
		m.beat(now)
	case msg.Kind == newObserver:
		return fmt.Errorf("detector: %v is rank %d, expected %d, the next that lives", msg.Kind, from, m.observer)
	}
	return nil
}

// hear handles a heartbeat. If it is not from the emitter, it is the answer to a ping, or its
// sender already knows that this rank's emitter has died, or it was sent before this rank ceased
// to observe the sender.
func (m *Machine) hear(now time.Duration, from int) {
	if from == m.emitter {
		m.heard = true
		m.suspectAt = now + m.patience(1)
	}
	m.sees(now, from)
}

// doubt notices that this rank has stood still: that it is fed more than the slack after its
// Deadline. It then postpones accusations: see Machine.
func (m *Machine) doubt(now time.Duration) {
	slack := m.ring.slack()
	if m.watch.accuseAt != nil {
		slack = m.config.slack()
	}
	if now-m.Deadline() <= slack {
		return
	}
	m.beatAt = max(m.beatAt, now) // so the next doubt does not notice the same delay again
	m.heard = false               // the next heartbeat shall not decrease the score
	if m.score < maxScore {
		m.score++
		m.suspectAt = max(m.suspectAt, now+m.ring.Timeout)
		m.forbear(now)
	}
}

// patience returns the length of the given number of timeouts of the ring, plus one for each point
// of the score.
func (m *Machine) patience(timeouts int) time.Duration {
	return time.Duration(timeouts+m.score) * m.ring.Timeout
}

// beat sends a heartbeat to the observer. It also decreases the score if this rank has heard its
// emitter since the last heartbeat.
func (m *Machine) beat(now time.Duration) {
	m.send(m.observer, Message{Kind: Heartbeat})
	m.beatAt = now + m.ring.Period
	// The score decreases here, once a period, and not with each heartbeat: many heartbeats wait
	// for a rank that has stood still. It does not decrease while the emitter is silent. So a dead
	// emitter is declared dead after at most maxScore additional timeouts.
	if m.heard && m.score > 0 {
		m.score--
	}
	m.heard = false
}

// learn notes the deaths of the ranks first to last, which rank from has told (this rank, if it
// has found out itself). If any of them is new, it passes them on, and replaces dead neighbours,
// emitter and observer. Afterwards each neighbour has been sent all deaths that this rank knows,
// except that those from a neighbour are not sent back to it.
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
	for _, to := range old { // also the dead: a rank that was declared dead but lives is told so
		if to != from {
			m.send(to, Message{Kind: Notice, first: first, last: last})
		}
	}
	for _, to := range m.neighbours {
		if slices.Contains(old, to) {
			continue
		}
		for _, u := range m.dead {
			m.send(to, Message{Kind: Notice, first: u.first, last: u.last})
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
			m.send(emitter, Message{Kind: newObserver})
			m.suspectAt = now + m.patience(2) // more than 2L: newObserver there, heartbeat back
		}
	}
	m.takeWatch(now)
}

// findNeighbours returns the neighbours in the binomial graph. The next living rank beyond a dead
// neighbour takes its place.
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

// living returns the first living rank at or after r, in a direction: 1 up, -1 down. r may be up to
// size-1 below 0 or above size-1.
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

// side returns the side that this rank is on: the ranks that it does not know to be dead.
func (m *Machine) side() side { return side{m.size - m.dead.size(), m.living(0, 1)} }

func (m *Machine) send(to int, msg Message) {
	m.out = append(m.out, Output{To: to, Message: msg})
}
