package mpi

import (
	"cmp"
	"slices"

	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/match"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// How many bytes of a message go with its head, at most: by MPI, whose packets are not
// longer than MX_PACKET, and through a ring.
const (
	farLimit  = 3968
	nearLimit = 8192
)

// bodyTags is how many tags of MPI bodies have: no two between the same processes
// are under way with one. MPI promises 32767.
const bodyTags = 32000

// side is this process's side of a communicator. The engine's mu guards it, but for
// the epochs, which are only changed under it.
type side struct {
	e       *engine
	context contextID
	fate    *fate
	rank    int
	members []int // their ranks in the world; nil: the same
	rankOf  map[int]int

	match.Port[arrival]
	// Requests whose bytes go apart: those that are offered or sent, by the offer's
	// number, and those that receive.
	sending   map[*transport.Request]uint64
	receiving map[*transport.Request]bool // true: cancelled, should no bytes come

	listener      transport.Listener
	inbox         []*arrival // for it
	asking, again bool       // it is asked for messages, and has been poked since
}

// arrival is a message that has come, perhaps but for its bytes.
type arrival struct {
	head   head
	source int // process
	bytes  []byte
	match.Node[arrival]
}

// kept is a packet that has to outlive the next one.
func (a *arrival) kept() *arrival {
	return &arrival{head: a.head, source: a.source, bytes: slices.Clone(a.bytes)}
}

var (
	_ transport.Comm   = (*side)(nil)
	_ transport.Driver = (*side)(nil)
)

// newSide makes a side, and gives it what has come for it.
func (e *engine) newSide(c contextID, f *fate, rank int, members []int, epoch transport.Epoch) *side {
	s := &side{e: e, context: c, fate: f, rank: rank, members: members,
		sending: make(map[*transport.Request]uint64), receiving: make(map[*transport.Request]bool)}
	s.Begin(epoch)
	if members != nil {
		s.rankOf = make(map[int]int, len(members))
		for i, r := range members {
			s.rankOf[r] = i
		}
	}
	e.sides[c] = s
	for p, died := range f.dead {
		if rank := s.rankIn(p); died && rank >= 0 {
			s.Lose(rank)
		}
	}
	early := e.early[c]
	delete(e.early, c)
	for _, a := range early {
		s.deliver(a)
	}
	return s
}

func (s *side) Rank() int { return s.rank }

func (s *side) Size() int {
	if s.members == nil {
		return s.e.size
	}
	return len(s.members)
}

func (s *side) process(rank int) int {
	if s.members == nil {
		return rank
	}
	return s.members[rank]
}

func (s *side) Features() transport.Features {
	return transport.Features{Name: "mpi", CancelSend: true, Deaths: s.e.mortal}
}

// Await makes progress until w is woken, or ended is closed.
func (s *side) Await(w waiting.Sleeper, ended <-chan struct{}) (woken bool) {
	return s.e.await(w, ended)
}

// Failed returns the error of MPI after which no message moves.
func (s *side) Failed() error {
	if !s.e.over.Load() {
		return nil
	}
	s.e.mu.Lock()
	defer s.e.mu.Unlock()
	return s.e.err
}

// Watch has more progress made while nobody awaits.
func (s *side) Watch(n int) {
	s.e.watched.Add(int32(n))
	if n > 0 {
		select {
		case s.e.attend <- struct{}{}:
		default:
		}
	}
}

// TrySend sends a short message.
func (s *side) TrySend(dest, tag int, epoch transport.Epoch, buf []byte) bool {
	e := s.e
	if len(buf) > nearLimit {
		return false
	}
	e.lock()
	process := s.process(dest)
	ok := epoch == s.Live() && e.err == nil && !s.HasLostAny() && !s.fate.expired && len(buf) <= e.eager(process)
	if ok {
		e.packet(process, &head{kind: whole, to: s.context, epoch: epoch, tag: tag, length: len(buf)}, buf)
		ok = e.err == nil
	}
	e.unlock()
	return ok
}

// Isend sends a short message at once, and offers any other.
func (s *side) Isend(r *transport.Request) {
	e := s.e
	e.lock()
	defer e.unlock()
	r.Kind, r.Where, r.Err = transport.Sending, nil, nil
	r.Status = transport.Status{Source: s.rank, Tag: r.Tag, Bytes: len(r.Buf)}
	err := s.barred(r)
	if err == nil {
		err = s.DeathFor(r)
	}
	if err != nil {
		e.end(r, err)
		return
	}
	h := head{kind: whole, to: s.context, epoch: r.Epoch, tag: r.Tag, length: len(r.Buf)}
	if len(r.Buf) <= e.eager(s.process(r.Peer)) && r.Mode&transport.Synchronous == 0 {
		e.packet(s.process(r.Peer), &h, r.Buf)
		e.end(r, e.err)
		return
	}
	b := &body{side: s, request: r, bytes: r.Buf}
	e.offer(s.process(r.Peer), &h, b)
	s.sending[r] = h.id
	s.needs(r)
}

// barred returns the error of a request that this rank must not begin.
func (s *side) barred(r *transport.Request) error {
	err := cmp.Or(s.e.err, s.Barred(r))
	if err == nil && s.fate.expired {
		return transport.ErrDied
	}
	return err
}

// Irecv takes a message that has come, or waits for one.
func (s *side) Irecv(r *transport.Request) { s.begin(r, transport.Receiving) }

// Probe looks for a message that has come, or waits for one.
func (s *side) Probe(r *transport.Request) { s.begin(r, transport.Probing) }

func (s *side) begin(r *transport.Request, kind transport.Kind) {
	e := s.e
	e.lock()
	defer e.unlock()
	r.Kind, r.Where, r.Err = kind, nil, nil
	s.matchOrPost(r)
}

// matchOrPost gives r a message that has come, or posts it, where a message that
// comes meets it.
func (s *side) matchOrPost(r *transport.Request) {
	if err := s.barred(r); err != nil {
		s.e.end(r, err)
	} else if a := s.Match(r); a != nil && r.Kind == transport.Receiving {
		s.give(r, a)
	} else if a != nil {
		s.e.end(r, nil)
	} else if err := s.DeathFor(r); err != nil {
		s.e.end(r, err)
	} else {
		s.Post(r)
		s.needs(r)
	}
}

// rankIn is the rank of a process, or -1.
func (s *side) rankIn(process int) int {
	if s.members == nil {
		return process
	}
	if rank, ok := s.rankOf[process]; ok {
		return rank
	}
	return -1
}

// deliver gives a message to the first receive that matches it, or keeps it.
func (s *side) deliver(a *arrival) {
	switch {
	case s.fate.expired || s.fate.dead[a.source]:
		return
	case a.head.listener:
		a = a.kept()
		s.inbox = append(s.inbox, a)
		if a.head.kind == offer {
			s.e.take(a, &body{side: s, bytes: make([]byte, a.head.length)})
		}
		s.handOn()
		return
	case s.IsOver(a.head.epoch):
		return // its sender ends it with the epoch
	}
	k := match.Key{Epoch: a.head.epoch, Source: s.rankIn(a.source), Tag: a.head.tag}
	probes, recv := s.Take(k, a.head.length)
	s.e.endAll(probes, nil)
	if recv != nil {
		s.give(recv, a)
		return
	}
	a = a.kept()
	a.Node = match.Node[arrival]{Key: k, Bytes: a.head.length, Of: a}
	s.Arrived.Push(&a.Node)
}

// give has a receive, which has the message's status, get the message. Both are in no
// list any more.
func (s *side) give(r *transport.Request, a *arrival) {
	switch {
	case a.head.kind == whole:
		r.Fill(r.Status, a.bytes, false)
	case !r.Take && r.Alloc == nil && a.head.length > len(r.Buf):
		s.e.refuse(a)
		r.Err = &transport.TruncateError{Status: r.Status, Room: len(r.Buf)}
	default:
		buf := r.Buf
		switch {
		case r.Take:
			r.Buf = make([]byte, a.head.length)
			buf = r.Buf
		case r.Alloc != nil:
			buf = r.Alloc(a.head.length)
		}
		s.receiving[r] = false
		s.e.take(a.kept(), &body{side: s, request: r, bytes: buf[:a.head.length]})
		return
	}
	s.e.end(r, r.Err)
}

// handOn gives the listener what has come as a whole, in its order.
func (s *side) handOn() {
	if s.listener == nil {
		return
	}
	n := 0
	for ; n < len(s.inbox) && s.inbox[n].head.kind == whole; n++ {
		a := s.inbox[n]
		s.e.news = append(s.e.news, news{to: s.listener, from: s.rankIn(a.source), payload: a.bytes})
	}
	s.inbox = slices.Delete(s.inbox, 0, n)
}

// Cancel takes back a receive or probe that waits, or an offer that nobody has
// accepted.
func (s *side) Cancel(r *transport.Request) bool {
	s.e.lock()
	defer s.e.unlock()
	if id := s.sending[r]; s.takeBack(r) {
		h := head{kind: withdrawn, to: s.context, id: id}
		if s.process(r.Peer) == s.e.rank {
			s.e.forget(s.e.rank, h) // at once, if it is there
		}
		s.e.packet(s.process(r.Peer), &h, nil)
		s.e.end(r, transport.ErrCancelled)
		return true
	}
	if s.Withdraw(r) {
		s.e.end(r, transport.ErrCancelled)
		return true
	}
	if _, ok := s.receiving[r]; ok {
		s.receiving[r] = true
	}
	return false
}

// takeBack takes back an offer that is not accepted.
func (s *side) takeBack(r *transport.Request) bool {
	id, ok := s.sending[r]
	if ok = ok && s.e.offers[id] != nil; ok {
		delete(s.e.offers, id)
		delete(s.sending, r)
	}
	return ok
}

// Advance moves this side to the next epoch.
func (s *side) Advance(generation int, cause error) {
	s.e.lock()
	s.endAll(s.Port.Advance(generation, cause), cause)
}

// Revoke ends all requests, now and later.
func (s *side) Revoke(cause error) {
	s.e.lock()
	s.endAll(s.Port.Revoke(cause), cause)
}

// endAll ends what was posted and offered, and waits a moment for requests whose bytes are
// on their way, both ends of which MPI has. The caller holds mu, and loses it.
func (s *side) endAll(posted *transport.Request, cause error) {
	s.e.endAll(posted, cause)
	s.endOffers(cause, func(*transport.Request) bool { return true })
	for idle := 0; s.e.err == nil && len(s.sending)+len(s.receiving) > 0; idle++ {
		s.e.mu.Unlock()
		s.e.rest(idle)
		s.e.mu.Lock()
	}
	s.e.unlock()
}

// endOffers ends the sends that which holds for and nobody has accepted.
func (s *side) endOffers(cause error, which func(*transport.Request) bool) {
	for r := range s.sending {
		if which(r) && s.takeBack(r) {
			s.e.end(r, cause)
		}
	}
}

// Sub is done at once: all members work out the same context.
func (s *side) Sub(name transport.Name, members []int, done func(transport.Comm, error)) {
	if err := name.Check(); err != nil {
		done(nil, err)
		return
	}
	e := s.e
	e.lock()
	rank, processes := s.rank, s.members
	if members != nil {
		rank = slices.Index(members, s.rank)
		processes = make([]int, len(members))
		for i, r := range members {
			processes[i] = s.process(r)
		}
	}
	context, fate := s.context.child(name), s.fate
	if s.context == world { // of a program of its own
		fate = e.fate(context)
	}
	made := e.newSide(context, fate, rank, processes, name.Epoch)
	e.unlock()
	done(made, nil)
}

// Close drops what comes from now on.
func (s *side) Close() error {
	s.e.lock()
	defer s.e.unlock()
	s.e.close(s.context)
	s.Arrived, s.inbox, s.listener = match.Messages[arrival]{}, nil, nil
	return nil
}

// Listen has l take what comes and what has come.
func (s *side) Listen(l transport.Listener) {
	s.e.lock()
	s.listener = l
	for _, rank := range s.Dead() {
		s.e.news = append(s.e.news, news{to: l, from: rank, died: true})
	}
	s.handOn()
	s.e.unlock()
	s.Poke()
}

// Poke sends what the listener has to send.
func (s *side) Poke() {
	e := s.e
	e.lock()
	if s.listener == nil || s.asking {
		s.again = true
		e.mu.Unlock()
		return
	}
	s.asking = true
	for l := s.listener; ; {
		s.again = false
		e.mu.Unlock()
		to, payload, ok := l.Next()
		e.mu.Lock()
		switch {
		case ok && e.err == nil:
			if !s.fate.expired && !s.HasLost(to) {
				s.tell(to, payload)
			}
		case !s.again:
			s.asking = false
			e.unlock()
			return
		}
	}
}

// tell sends a listener's message.
func (s *side) tell(to int, payload []byte) {
	h := head{kind: whole, to: s.context, length: len(payload), listener: true}
	if len(payload) <= s.e.eager(s.process(to)) {
		s.e.packet(s.process(to), &h, payload)
	} else {
		s.e.offer(s.process(to), &h, &body{side: s, bytes: payload})
	}
}

// Die kills this process.
func (s *side) Die() {
	s.e.mpi.kill()
}

// Leave says that this process's program has ended.
func (s *side) Leave(failed bool) {
	s.e.lock()
	s.e.leave(s.fate, failed)
	s.e.unlock()
}

// EachPending visits the requests that have not ended.
func (s *side) EachPending(visit func(*transport.Request)) {
	s.e.lock()
	defer s.e.mu.Unlock()
	for r := range s.Posted.All() {
		visit(r)
	}
	for r := range s.sending {
		visit(r)
	}
}

// Looked is how many messages and receives were looked at to match others.
func (s *side) Looked() int {
	s.e.lock()
	defer s.e.mu.Unlock()
	return s.Port.Looked()
}
