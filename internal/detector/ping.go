package detector

import "time"

// A watch is the state of the watchman: the highest living rank, which pings all others. When the
// ring has detected its death, the next lower living rank becomes the watchman. At all other ranks
// the watch is nil, and its methods do nothing.
//
// The watchman detects the death of any other rank within a timeout, and simultaneous deaths
// together. The ring detects deaths of consecutive ranks one after another.
type watch struct {
	period, timeout time.Duration // of Config, not of the slower ring
	// accuseAt is when each rank is declared dead unless it is heard before. It is Never for the
	// dead, and for this rank.
	accuseAt []time.Duration
	pingAt   time.Duration // when all are pinged next
	lookAt   time.Duration // when accuseAt is looked at next; not later than the earliest of it
}

// deadline is part of [Machine.Deadline].
func (w *watch) deadline() time.Duration {
	if w == nil {
		return Never
	}
	return min(w.pingAt, w.lookAt)
}

// takeWatch makes this rank the watchman if all higher ranks are dead. If it is the watchman, it
// stops watching the ranks that are dead now.
func (m *Machine) takeWatch(now time.Duration) {
	if !m.config.Ping || m.silent || m.living(m.size-1, -1) != m.rank {
		return
	}
	w := m.watch
	if w == nil {
		w = &watch{period: m.config.Period, timeout: m.config.Timeout, accuseAt: make([]time.Duration, m.size), pingAt: now, lookAt: now}
		for r := range w.accuseAt {
			w.accuseAt[r] = now + 2*w.timeout // two timeouts, as for a new emitter in the ring
		}
		w.accuseAt[m.rank] = Never
		m.watch = w
	}
	for _, u := range m.dead {
		for r := u.first; r <= u.last; r++ {
			w.accuseAt[r] = Never
		}
	}
}

// tickWatch pings all others if that is due, and declares the ranks dead whose time has come.
func (m *Machine) tickWatch(now time.Duration) {
	w := m.watch
	if w == nil {
		return
	}
	if now >= w.pingAt {
		for r, at := range w.accuseAt {
			if at < Never {
				m.send(r, Message{Kind: Ping})
			}
		}
		w.pingAt = now + w.period
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

// hear notes a sign of life of a rank, which must not be among the dead. The rank then has one
// timeout, plus one for each point of the score.
func (w *watch) hear(rank int, now time.Duration, score int) {
	if w != nil {
		w.accuseAt[rank] = now + time.Duration(1+score)*w.timeout
		w.lookAt = min(w.lookAt, w.accuseAt[rank])
	}
}

// forbear gives each living rank at least a timeout from now on.
func (w *watch) forbear(now time.Duration) {
	if w == nil {
		return
	}
	for r, at := range w.accuseAt {
		if at < Never {
			w.accuseAt[r] = max(at, now+w.timeout)
		}
	}
}

// suspects is part of [Machine.Suspects].
func (w *watch) suspects(now time.Duration, f func(rank int)) (next time.Duration) {
	next = Never
	if w == nil {
		return next
	}
	for r, at := range w.accuseAt {
		switch half := at - w.timeout/2; {
		case at == Never:
		case now < half:
			next = min(next, half)
		default:
			f(r)
		}
	}
	return next
}
