package detector

import "time"

// A watch is the state of the watchman, which pings all others. The highest living rank has it. When it has
// died, which the ring detects, the next one takes it. At other ranks it is nil, and its methods do nothing.
//
// The death of any other rank is detected within a timeout, and simultaneous deaths are detected together.
// In the ring, deaths of consecutive ranks are detected one after another.
type watch struct {
	period, timeout time.Duration
	accuseAt        []time.Duration // by rank: when it is accused unless heard before; Never for the dead and itself
	pingAt          time.Duration   // the time of the next ping
	lookAt          time.Duration   // not after any of accuseAt
}

func (w *watch) deadline() time.Duration {
	if w == nil {
		return Never
	}
	return min(w.pingAt, w.lookAt)
}

// takeWatch takes the watch if all higher ranks are dead.
func (m *Machine) takeWatch(now time.Duration) {
	if !m.config.Ping || m.silent || m.living(m.size-1, -1) != m.rank {
		return
	}
	w := m.watch
	if w == nil {
		w = &watch{period: m.config.Period, timeout: m.config.Timeout, accuseAt: make([]time.Duration, m.size), pingAt: now, lookAt: now}
		for r := range w.accuseAt {
			w.accuseAt[r] = now + 2*w.timeout // as in the ring, at the start
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

// tickWatch does what is due in the watch.
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

// hear takes a sign of life of a rank, which is not among the dead.
func (w *watch) hear(rank int, now time.Duration, score int) {
	if w != nil {
		w.accuseAt[rank] = now + time.Duration(1+score)*w.timeout
		w.lookAt = min(w.lookAt, w.accuseAt[rank])
	}
}

// forbear gives all ranks another timeout.
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
