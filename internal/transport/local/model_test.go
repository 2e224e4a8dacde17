package local

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// model does what this package does, without linked lists, locks and buffers. Within one
// goroutine every step has one correct outcome, and FuzzModel compares the two.
type model struct {
	epoch   [modelRanks]transport.Epoch
	cause   [modelRanks]error
	posted  [modelRanks][]*modelRequest // receives and probes, oldest first
	arrived [modelRanks][]modelMessage
	probed  [modelRanks][]*modelRequest // Mprobes that have a message
}

const modelRanks = 3

type modelRequest struct {
	rank   int
	kind   transport.Kind
	r      transport.Request // as it was started
	done   bool
	err    error
	status transport.Status
	data   string        // received
	has    *modelMessage // of an Mprobe, unless the sender has withdrawn it
	gone   error         // ErrCancelled, if the sender has cancelled it
}

type modelMessage struct {
	status transport.Status
	epoch  transport.Epoch
	data   string
	send   *modelRequest // nil: buffered
}

func (q *modelRequest) end(err error) { q.done, q.err = true, err }

func (q *modelRequest) wants(m modelMessage) bool {
	source := q.r.Peer == transport.AnySource || q.r.Peer == m.status.Source
	tag := q.r.Tag == m.status.Tag || q.r.Tag == transport.AnyTag && m.status.Tag >= 0
	return source && tag && q.r.Epoch == m.epoch
}

// give ends a receive or probe with a message, and the message's send, if it waits. It says
// whether the message is consumed.
func (q *modelRequest) give(m modelMessage) bool {
	q.status = m.status
	q.end(nil)
	switch q.kind {
	case transport.Probing:
		return false
	case transport.Mprobing:
		q.has = &m
		return true
	}
	switch {
	case q.r.Take || q.r.Alloc != nil || len(m.data) <= len(q.r.Buf):
		q.data = m.data
	default:
		q.err = &transport.TruncateError{Status: m.status, Room: len(q.r.Buf)}
	}
	if m.send != nil {
		m.send.end(nil)
	}
	return true
}

func (w *model) start(q *modelRequest) {
	switch {
	case q.r.Epoch != w.epoch[q.rank]:
		q.end(w.cause[q.rank])
	case q.kind == transport.Sending:
		w.send(q)
	default:
		for i, m := range w.arrived[q.rank] {
			if q.wants(m) {
				if q.give(m) {
					w.arrived[q.rank] = slices.Delete(w.arrived[q.rank], i, i+1)
				}
				if q.has != nil {
					w.probed[q.rank] = append(w.probed[q.rank], q)
				}
				return
			}
		}
		w.posted[q.rank] = append(w.posted[q.rank], q)
	}
}

// mrecv receives the message that an Mprobe has taken.
func (w *model) mrecv(q, probe *modelRequest) {
	if q.r.Epoch != w.epoch[q.rank] {
		q.end(w.cause[q.rank]) // the sender ends what it has sent
		return
	}
	w.probed[q.rank] = slices.DeleteFunc(w.probed[q.rank], func(x *modelRequest) bool { return x == probe })
	switch {
	case probe.has != nil:
		q.give(*probe.has)
	case probe.gone != nil:
		q.end(probe.gone)
	default:
		q.r.Tag = transport.NoTag
		w.posted[q.rank] = append(w.posted[q.rank], q)
	}
}

// takeBack takes messages for which which returns true from their Mprobes.
func (w *model) takeBack(gone error, which func(*modelMessage) bool) {
	for _, q := range slices.Concat(w.probed[:]...) {
		if q.has != nil && which(q.has) {
			q.has, q.gone = nil, gone
		}
	}
}

func (w *model) send(q *modelRequest) {
	to := q.r.Peer
	q.status = transport.Status{Source: q.rank, Tag: q.r.Tag, Bytes: len(q.r.Buf)}
	m := modelMessage{q.status, q.r.Epoch, string(q.r.Buf), q}
	var taker *modelRequest // an Mprobe
	if m.epoch == w.epoch[to] {
		for _, p := range slices.Clone(w.posted[to]) {
			if taker == nil && p.wants(m) {
				w.posted[to] = slices.DeleteFunc(w.posted[to], func(x *modelRequest) bool { return x == p })
				switch {
				case p.kind == transport.Mprobing:
					taker = p
				case p.give(m):
					return
				}
			}
		}
	}
	if q.r.Mode&transport.Synchronous == 0 && (len(q.r.Buf) <= EagerLimit || q.r.Mode&transport.Shared != 0) {
		q.end(nil)
		m.send = nil
		if m.epoch.Stale(w.epoch[to]) {
			return
		}
	}
	if taker != nil {
		taker.give(m)
		w.probed[to] = append(w.probed[to], taker)
		return
	}
	w.arrived[to] = append(w.arrived[to], m)
}

// trySend says whether it has sent the message.
func (w *model) trySend(q *modelRequest) bool {
	to := q.r.Peer
	m := modelMessage{status: transport.Status{Source: q.rank, Tag: q.r.Tag}, epoch: q.r.Epoch}
	first := slices.IndexFunc(w.posted[to], func(p *modelRequest) bool { return p.kind != transport.Probing && p.wants(m) })
	waits := m.epoch == w.epoch[to] && first >= 0 && w.posted[to][first].kind == transport.Receiving
	if q.r.Epoch != w.epoch[q.rank] || !waits && len(q.r.Buf) > EagerLimit {
		return false
	}
	w.send(q)
	return true
}

func (w *model) cancel(q *modelRequest) bool {
	if q.done {
		return false
	}
	for rank := range modelRanks {
		w.posted[rank] = slices.DeleteFunc(w.posted[rank], func(x *modelRequest) bool { return x == q })
		w.arrived[rank] = slices.DeleteFunc(w.arrived[rank], func(m modelMessage) bool { return m.send == q })
	}
	w.takeBack(transport.ErrCancelled, func(m *modelMessage) bool { return m.send == q })
	q.end(transport.ErrCancelled)
	return true
}

func (w *model) advance(rank, generation int, cause error) {
	e := w.epoch[rank].Next(generation)
	w.epoch[rank], w.cause[rank] = e, cause
	for _, q := range w.posted[rank] {
		q.end(cause)
	}
	w.posted[rank] = nil
	w.takeBack(nil, func(m *modelMessage) bool {
		ends := m.send != nil && m.status.Source == rank && m.epoch.Stale(e)
		if ends {
			m.send.end(cause)
		}
		return ends
	})
	for to := range modelRanks {
		w.arrived[to] = slices.DeleteFunc(w.arrived[to], func(m modelMessage) bool {
			switch {
			case !m.epoch.Stale(e):
				return false
			case m.send != nil && m.status.Source == rank:
				m.send.end(cause)
				return true
			default:
				return m.send == nil && to == rank
			}
		})
	}
}

// A pair is a request in both worlds.
type pair struct {
	*modelRequest
	real     request
	alloc    []byte
	redeemed bool // its message has been received
}

// received is what the real request received.
func (p *pair) received() string {
	switch {
	case p.kind != transport.Receiving || p.real.Err != nil:
		return ""
	case p.r.Alloc != nil:
		return string(p.alloc)
	default:
		return string(p.real.Buf[:p.real.Status.Bytes])
	}
}

func (p *pair) String() string {
	return fmt.Sprintf("%v of rank %d, peer %d, tag %d, mode %d, epoch %#x", p.kind, p.rank, p.r.Peer, p.r.Tag, p.r.Mode, uint64(p.r.Epoch))
}

// script reads choices from bytes. At their end it reads zeroes.
type script []byte

func (s *script) pick(n int) int {
	if len(*s) == 0 {
		return 0
	}
	x := int((*s)[0]) % n
	*s = (*s)[1:]
	return x
}

func play(t *testing.T, s script) {
	w := new(model)
	ranks := New(modelRanks)
	var all, open []*pair
	var names []string
	advances := 0
	defer func() {
		if t.Failed() {
			t.Logf("steps: %q", names)
		}
	}()
	for step := 0; len(s) > 0; step++ {
		pendings := 0
		rank := s.pick(modelRanks)
		c := ranks[rank]
		switch what := s.pick(13); what {
		case 0, 1, 2, 3, 4, 5, 10:
			kind := map[int]transport.Kind{0: transport.Sending, 2: transport.Sending, 4: transport.Probing, 10: transport.Mprobing}[what]
			if kind == transport.Idle {
				kind = transport.Receiving
			}
			p := newPair(&s, step, rank, kind, w.epoch[rank])
			all, open = append(all, p), append(open, p)
			names = append(names, p.String())
			w.start(p.modelRequest)
			p.real.Request = p.r
			p.real.Done, p.real.communicator = &p.real, c.comm
			map[transport.Kind]func(*transport.Request){
				transport.Sending: c.Isend, transport.Receiving: c.Irecv, transport.Probing: c.Probe, transport.Mprobing: c.Mprobe,
			}[kind](&p.real.Request)
		case 6, 7:
			if len(all) > 0 {
				p := all[len(all)-1-s.pick(min(len(all), 10))]
				names = append(names, "cancel "+p.String())
				require.Equal(t, w.cancel(p.modelRequest), ranks[p.rank].Cancel(&p.real.Request))
			}
		case 8:
			p := newPair(&s, step, rank, transport.Sending, w.epoch[rank])
			names = append(names, "try "+p.String())
			p.r.Mode = 0
			sent := w.trySend(p.modelRequest)
			require.Equal(t, sent, c.TrySend(p.r.Peer, p.r.Tag, p.r.Epoch, p.r.Signature, p.r.Buf), "TrySend as %v", p)
			clear(p.r.Buf)
		case 11, 12:
			taken := slices.DeleteFunc(slices.Clone(all), func(p *pair) bool { return p.kind != transport.Mprobing || p.err != nil || !p.done || p.redeemed })
			if len(taken) > 0 {
				probe := taken[s.pick(len(taken))]
				probe.redeemed = true
				p := newPair(&s, step, probe.rank, transport.Receiving, 0)
				p.r.Epoch = probe.r.Epoch
				names = append(names, "receive what "+probe.String()+" has")
				all, open = append(all, p), append(open, p)
				w.mrecv(p.modelRequest, probe.modelRequest)
				p.real.Request = p.r
				p.real.Where, p.real.Done, p.real.communicator = probe.real.Where, &p.real, c.comm
				ranks[p.rank].Mrecv(&p.real.Request)
			}
		case 9:
			// No rank may be more than one error ahead of another.
			generation := s.pick(2)
			next := w.epoch[rank].Next(generation)
			ahead := func(e transport.Epoch) bool { return e.Next(generation).Stale(next) }
			if !slices.ContainsFunc(w.epoch[:], ahead) {
				advances++
				cause := fmt.Errorf("error %d", advances)
				names = append(names, fmt.Sprintf("advance %d of rank %d", generation, rank))
				w.advance(rank, generation, cause)
				c.Advance(generation, cause)
			}
		}
		open = slices.DeleteFunc(open, func(p *pair) bool {
			if p.done {
				p.check(t)
			} else if p.real.ends != 0 {
				require.Fail(t, "ended", "%v with %v", p, p.real.Err)
			}
			return p.done
		})
		for rank, c := range ranks {
			require.Equal(t, w.epoch[rank], c.Epoch())
			pending := transport.Pending(c)
			require.Equal(t, len(w.arrived[rank]), c.Arrived.Len(), "messages that wait at rank %d", rank)
			sends := 0
			for _, p := range open {
				if p.rank == rank && p.kind == transport.Sending {
					sends++
				}
				if p.rank == rank && !slices.Contains(pending, &p.real.Request) {
					require.Fail(t, "not pending", "%v", p)
				}
			}
			require.Len(t, c.sending.messages, sends, "sends of rank %d", rank)
			pendings += len(pending)
		}
		require.Equal(t, len(open), pendings, "pending requests")
	}
	for _, p := range all {
		if p.done {
			p.check(t) // nothing has changed since
		}
	}
	for range 2 { // after which no message can be received
		for _, c := range ranks {
			c.Advance(0, errors.New("the end"))
		}
	}
	for _, c := range ranks {
		isIdle(t, c)
	}
}

// check checks that the real request ended like the model's.
func (p *pair) check(t *testing.T) {
	t.Helper()
	require.Equal(t, 1, p.real.ends, "%v: times it ended", p)
	require.False(t, p.real.locked, "%v: Completed was called under a lock", p)
	require.Equal(t, p.err, p.real.Err, "%v: error", p)
	if p.received() != p.data {
		require.Fail(t, "message", "%v: %.8q, want %.8q", p, p.received(), p.data)
	}
	if p.err == nil || p.status.Bytes > 0 { // truncated
		require.Equal(t, p.status, p.real.Status, "%v: status", p)
	}
}

// newPair draws a request.
func newPair(s *script, step, rank int, kind transport.Kind, epoch transport.Epoch) *pair {
	p := &pair{modelRequest: &modelRequest{rank: rank, kind: kind}}
	r := transport.Request{Peer: s.pick(modelRanks), Tag: []int{1, 2, -5}[s.pick(3)], Epoch: epoch}
	if epoch != 0 && s.pick(8) == 0 {
		r.Epoch = 0 // from before an error
	}
	size := []int{1, 3, 0, EagerLimit, EagerLimit + 1}[s.pick(5)]
	if kind == transport.Sending {
		r.Mode = transport.Mode(s.pick(4))
		r.Buf = make([]byte, size)
		for i := range r.Buf {
			r.Buf[i] = byte(step)
		}
	} else {
		if s.pick(3) == 0 {
			r.Peer = transport.AnySource
		}
		if s.pick(3) == 0 {
			r.Tag = transport.AnyTag
		}
		switch s.pick(4) {
		case 0:
			r.Take = true
		case 1:
			r.Alloc = func(n int) []byte {
				p.alloc = make([]byte, n)
				return p.alloc
			}
		default:
			r.Buf = make([]byte, size)
		}
	}
	p.r = r
	return p
}

func FuzzModel(f *testing.F) {
	f.Add([]byte{})
	for seed := range uint64(5) {
		f.Add(randomScript(seed))
	}
	f.Fuzz(func(t *testing.T, s []byte) { play(t, s[:min(len(s), 2000)]) })
}

func TestModel(t *testing.T) {
	for seed := range uint64(400) {
		play(t, randomScript(seed))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func randomScript(seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 0))
	s := make([]byte, 600)
	for i := range s {
		s[i] = byte(r.Uint32())
	}
	return s
}
