package detector

import "time"

// A watch is the state of the watchman: the highest living rank, which pings all others. When the
// ring has detected its death, the next lower living rank becomes the watchman.
//
// The watchman detects the death of any other rank within a timeout, and simultaneous deaths
// together. The ring detects deaths of consecutive ranks one after another.
type watch struct {
	// accuseAt is when each rank is declared dead unless it is heard before. It is Never for the
	// dead, and for this rank. It is nil if this rank is not the watchman.
	accuseAt []time.Duration
	pingAt   time.Duration // when all are pinged next; Never if this rank is not the watchman
	lookAt   time.Duration // when accuseAt is looked at next; not later than the earliest of it
}

// takeWatch makes this rank the watchman if all higher ranks are dead. If it is the watchman, it
// stops watching the ranks that are dead now.
func (m *Machine) takeWatch(now time.Duration) {
	if !m.config.Ping || m.silent || m.living(m.size-1, -1) != m.rank {
		return
	}
	w := &m.watch
	if w.accuseAt == nil {
		*w = watch{make([]time.Duration, m.size), now, now}
		for r := range w.accuseAt {
			w.accuseAt[r] = now + 2*m.config.Timeout // two timeouts, as for a new emitter in the ring
		}
		w.accuseAt[m.rank] = Never
	}
	for _, u := range m.dead {
		for r := u.first; r <= u.last; r++ {
			w.accuseAt[r] = Never
		}
	}
}

// tickWatch pings all others if that is due, and declares the ranks dead whose time has come.
func (m *Machine) tickWatch(now time.Duration) {
	w := &m.watch
	if now >= w.pingAt {
		for r, at := range w.accuseAt {
			if at < Never {
				m.send(r, Message{Kind: Ping})
			}
		}
		w.pingAt = now + m.config.Period
	}
	if now >= w.lookAt {
		w.lookAt = Never
		for r := range w.accuseAt {
			if now >= w.accuseAt[r] {
				m.learn(now, m.rank, r, r)
			}
			w.lookAt = min(w.lookAt, w.accuseAt[r])
		}
	}
}

// sees notes a sign of life of a rank, which must not be among the dead. The rank then has one
// timeout, plus one for each point of the score.
func (m *Machine) sees(now time.Duration, rank int) {
	if w := &m.watch; w.accuseAt != nil {
		w.accuseAt[rank] = now + time.Duration(1+m.score)*m.config.Timeout
		w.lookAt = min(w.lookAt, w.accuseAt[rank])
	}
}

// forbear gives each rank that is watched at least a timeout from now on.
func (m *Machine) forbear(now time.Duration) {
	for r, at := range m.watch.accuseAt {
		if at < Never {
			m.watch.accuseAt[r] = max(at, now+m.config.Timeout)
		}
	}
}

// watched is part of [Machine.Suspects].
func (m *Machine) watched(now time.Duration, f func(rank int)) (next time.Duration) {
	next = Never
	for r, at := range m.watch.accuseAt {
		switch half := at - m.config.Timeout/2; {
		case at == Never:
		case now < half:
			next = min(next, half)
		default:
			f(r)
		}
	}
	return next
}
