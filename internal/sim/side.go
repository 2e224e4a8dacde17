package sim

import (
	"slices"
	"time"

	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/match"
)

// A side is one rank's side of a communicator, where incoming messages meet the rank's receives.
type side struct {
	comm         *communicator
	p            *process
	rank         int
	made, closed bool

	listener transport.Listener
	early    []*message // arrived before the listener
	poked    bool       // the listener is being asked for messages

	match.Matcher[message]
	sending match.Messages[message] // sent messages whose senders wait, linked by their second node

	latest map[int]time.Duration // by destination: when the last message arrives; nil if the model keeps the order itself
}

// A message is also the event of its arrival. One without a Send is buffered.
type message struct {
	event
	match.Node[message]
	sending     match.Node[message]
	from, to    *side
	shared      bool
	forListener bool
	state       state
	departs     time.Duration // when the network interface sends it
	at          time.Duration // when it was matched

	bytes  []byte
	buffer []byte // the message's own, reused
}

type state byte

const (
	underway  state = iota
	arrived         // waits in a side
	matched         // its sender has not been told yet
	withdrawn       // its sender has taken it back
)

// launch sends a message. If stay is set its bytes are not copied.
func (s *side) launch(dest, tag int, epoch transport.Epoch, word signature.Word, bytes []byte, stay bool) *message {
	w, p, to := s.comm.w, s.p, &s.comm.sides[dest]
	m := w.spare()
	*m = message{event: event{rank: to.p.rank, m: m}, from: s, to: to, shared: stay, bytes: bytes, buffer: m.buffer}
	m.Envelope = match.Envelope{Key: match.Key{Epoch: epoch, Source: s.rank, Tag: tag}, Bytes: len(bytes), Signature: word}
	m.Of = m
	if !stay && !w.cfg.Weightless {
		m.buffer = append(m.buffer[:0], bytes...)
		m.bytes = m.buffer
	}
	w.traceMessage(int(p.rank), "send", m)
	w.sent++
	p.sent++

	model := w.cfg.Model
	p.cpu = p.clock() + model.overhead(w.rng)
	p.injected = max(p.cpu, p.link)
	p.link = p.injected + model.gap(len(bytes))
	m.departs = p.injected
	arrival := m.departs + model.delay(len(bytes), w.rng)
	if model.random() {
		if s.latest == nil {
			s.latest = make(map[int]time.Duration)
		}
		if last, ok := s.latest[dest]; ok {
			arrival = max(arrival, last+1) // events of the same time come in any order
		}
		s.latest[dest] = arrival
	}
	w.push(arrival, &m.event)
	return m
}

// spare returns a message that was recycled, or a new one.
func (w *World) spare() *message {
	n := len(w.free)
	if n == 0 {
		return new(message)
	}
	m := w.free[n-1]
	w.free = w.free[:n-1]
	return m
}

// recycle keeps a message for reuse, unless its sender may know it yet.
func (m *message) recycle() {
	if w := m.from.comm.w; m.Send == nil {
		w.free = append(w.free, m)
	}
}

// deliver gives a message that has arrived to the first receive that matches it, or keeps it.
func (s *side) deliver(m *message) {
	w := s.comm.w
	if m.state != withdrawn && !m.forListener {
		if odd := s.Contradicts(&m.Envelope); odd != nil {
			s.halt(odd)
		}
	}
	if m.state == withdrawn || s.drops(m) {
		w.traceMessage(int(m.rank), "drops", m)
		m.recycle()
		return
	}
	w.traceMessage(int(m.rank), "gets", m)
	if m.forListener {
		s.hand(m)
		return
	}
	probes, recv := s.Take(&m.Envelope)
	switch {
	case recv == nil:
		m.state = arrived
		s.Arrived.Push(&m.Node)
	case recv.Kind == transport.Mprobing:
		m.state = arrived
		s.Keep(recv, &m.Node)
	}
	for r := range match.List(probes) {
		s.end(r, nil)
	}
	switch {
	case recv == nil:
	case recv.Kind == transport.Mprobing:
		s.endProbe(recv)
	default:
		s.receive(recv, m)
	}
}

// drops reports whether s will never receive m. If m's sender waits, its send ends with the
// sender's own epoch.
func (s *side) drops(m *message) bool {
	return s.closed || !m.forListener && s.IsOver(m.Epoch)
}

// hand gives a message to the listener, or keeps it.
func (s *side) hand(m *message) {
	if s.listener == nil {
		s.early = append(s.early, m)
		return
	}
	s.listener.Take(m.Source, m.bytes)
	m.recycle()
}

// receive ends r with the message m.
func (s *side) receive(r *transport.Request, m *message) {
	if s.comm.w.cfg.Weightless && m.Bytes <= len(r.Buf) {
		r.Status = m.Status()
	} else {
		r.Fill(m.Status(), m.bytes, m.shared)
	}
	if m.Send == nil {
		m.recycle()
	} else {
		m.acknowledge()
	}
	s.end(r, r.Err)
}

// acknowledge schedules the completion of the send of a matched message.
func (m *message) acknowledge() {
	w, from := m.from.comm.w, m.from
	m.state, m.at = matched, m.to.p.clock()
	w.push(m.at+w.cfg.Model.delay(0, w.rng), &event{rank: from.p.rank, f: func() {
		if m.received() {
			from.unsend(m)
			from.end(m.Send, nil)
			m.Send = nil
		}
	}})
}

// received reports whether m was matched, by a rank that was alive then.
func (m *message) received() bool {
	return m.state == matched && (!m.to.p.dead || m.to.p.died >= m.at)
}

// unsend removes m from the list of messages whose senders wait.
func (s *side) unsend(m *message) {
	s.sending.Remove(&m.sending)
}

// withdraw takes m back.
func (m *message) withdraw() {
	if m.state == arrived {
		m.to.Drop(&m.Node)
	}
	m.state, m.Send = withdrawn, nil
}

// endAll ends the posted requests, and the sends for which the function holds, with err. A send
// whose message a receive has matched ends with nil, like the receive.
func (s *side) endAll(posted *transport.Request, err error, which func(*transport.Request) bool) {
	// Remove all requests from their queues before the first Completed, which may cancel the
	// others.
	ended := slices.Collect(match.List(posted))
	for _, r := range ended {
		r.Err = err
	}
	for n := range s.sending.All() {
		m := n.Of
		if r := m.Send; which(r) {
			s.unsend(m)
			r.Where, r.Err = nil, err
			if m.received() {
				r.Err = nil
			}
			m.withdraw()
			ended = append(ended, r)
		}
	}
	for _, r := range ended {
		s.end(r, r.Err)
	}
}

// endProbe completes a probe. If it is a Mprobe, it keeps its message.
func (s *side) endProbe(r *transport.Request) {
	if !s.p.dead {
		r.Err = nil
		r.Done.Completed(r)
	}
}

// end completes r, unless its rank has died.
func (s *side) end(r *transport.Request, err error) {
	if !s.p.dead {
		r.Where, r.Err = nil, err
		r.Done.Completed(r)
	}
}
