package sim

import (
	"slices"
	"time"

	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/match"
)

// Dead says whether the rank has died.
func (w *World) Dead(rank int) bool { return w.ranks[rank].dead }

// Kill ends the rank: none of its events runs any more, its requests never end, and its later calls
// do nothing. If the rank kills itself, all messages that it has sent leave; otherwise, messages
// that have not left yet never do.
func (w *World) Kill(rank int) {
	p := &w.ranks[rank]
	if w.current == p.rank {
		p.die(max(p.clock(), p.injected))
	} else {
		p.die(w.now)
	}
}

// KillAt kills the rank at time t, even if its CPU is busy then.
func (w *World) KillAt(t time.Duration, rank int) {
	w.schedule(t, &event{rank: nobody, f: func() { w.Kill(rank) }})
}

func (p *process) die(at time.Duration) {
	if p.dead {
		return
	}
	w := p.w
	w.trace(int(p.rank), "dies")
	w.deaths++
	p.dead, p.died = true, at
	for _, s := range p.sides {
		s.Posted, s.sending = match.Receives{}, match.Messages[message]{}
	}
	p.ready, p.sides = nil, nil
	for i := range w.ranks {
		if q := &w.ranks[i]; !q.dead {
			w.push(at+max(0, w.cfg.Detect(w.rng)), &event{rank: q.rank, f: func() { q.learn(p) }})
		}
	}
}

// learn tells process p of a death: first it calls p's listeners, then it ends the requests that
// need the dead rank.
func (p *process) learn(victim *process) {
	if p.w.traces() {
		p.w.trace(int(p.rank), "learns that %d has died", victim.rank)
	}
	p.known = append(p.known, victim.rank)
	sides := slices.Clone(p.sides)
	for _, s := range sides {
		if r := s.comm.rankOf(victim.rank); r >= 0 {
			s.Lose(r)
			if s.listener != nil && !p.dead {
				s.listener.Died(r)
			}
		}
	}
	for _, s := range sides {
		r := s.comm.rankOf(victim.rank)
		if r < 0 || p.dead {
			continue
		}
		needs := func(q *transport.Request) bool { return q.Needs(r) }
		s.endAll(s.TakeIf(needs), &transport.DeadError{Rank: r}, needs)
	}
}

// loses reports whether a message that would arrive now is lost, because its sender died while it
// was under way or before it left. As on a connection, no message arrives after one that is lost.
func (w *World) loses(m *message) bool {
	if w.deaths == 0 {
		return false
	}
	from := m.from.p
	if !from.dead || w.now <= from.died {
		return false
	}
	pair := [2]int32{from.rank, m.rank}
	p := w.cfg.LoseInFlight
	if m.departs <= from.died && !w.broken[pair] && (p == 0 || w.rng.Float64() >= p) {
		return false
	}
	w.broken[pair] = true
	w.traceMessage(int(m.rank), "never gets", m)
	m.recycle()
	return true
}
