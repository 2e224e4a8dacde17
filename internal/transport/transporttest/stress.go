package transporttest

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// Random traffic between all ranks. Each message has to arrive exactly once, and in order per
// source and tag.
var stress = []test{
	{"AllPatternsAtOnce", 1, allPatterns},
}

// A pattern is a way to receive.
type pattern struct {
	anySource, anyTag bool
	probed            bool // by source and tag, from a probe
}

const (
	stressTags     = 3
	stressMessages = 40 // to each rank
)

// A traffic is all messages of one test, which every rank can compute.
type traffic struct {
	seed uint64
	n    int
}

type messageID struct{ from, to, i int }

// random is the source of a message's random properties.
func (f traffic) random(m messageID) *rand.Rand { return random(f.seed, m.from, m.to, m.i) }

func (f traffic) tag(m messageID) int { return f.random(m).IntN(stressTags) }

func (f traffic) request(m messageID) transport.Request {
	r := f.random(m)
	tag := r.IntN(stressTags)
	size := 8 + r.IntN(200)
	if r.IntN(4) == 0 {
		size += r.IntN(20_000)
	}
	buf := payload(size, m.from, m.to, m.i)
	binary.LittleEndian.PutUint64(buf, uint64(m.i))
	return transport.Request{Peer: m.to, Tag: tag, Mode: anyMode(r), Buf: buf}
}

func allPatterns(s *side) {
	patterns := []pattern{
		{}, {anyTag: true}, {anySource: true}, {anySource: true, anyTag: true},
		{anySource: true, anyTag: true, probed: true},
	}
	var comms []*side
	for i := range patterns {
		comms = append(comms, s.dup(uint64(i)))
	}
	seed := s.seed()
	s.together(len(patterns), func(g int) {
		patterns[g].exchange(comms[g], seed+uint64(g))
	})
}

func (p pattern) exchange(s *side, seed uint64) {
	f := traffic{seed, s.Size()}
	s.together(2, func(g int) {
		if g == 0 {
			f.sendAll(s)
		} else {
			p.receiveAll(s, f)
		}
	})
}

// sendAll sends to all ranks in a random order. It must not wait before it has sent everything:
// receivers may want the last message first.
func (f traffic) sendAll(s *side) {
	var turns []int
	for to := range f.n {
		turns = append(turns, slices.Repeat([]int{to}, stressMessages)...)
	}
	random(f.seed, s.Rank()).Shuffle(len(turns), func(i, j int) { turns[i], turns[j] = turns[j], turns[i] })
	next := make([]int, f.n)
	var sent []*op
	for _, to := range turns {
		m := f.request(messageID{s.Rank(), to, next[to]})
		sent = append(sent, s.sendAs(m.Mode, to, m.Tag, m.Buf))
		next[to]++
	}
	allOK(sent)
}

// receiveAll posts receives in a random order, some in advance.
func (p pattern) receiveAll(s *side, f traffic) {
	r := random(f.seed, s.Rank(), -1)
	type key struct{ source, tag int }
	expected := make(map[key][]messageID) // in order
	var asks []key                        // one for each message
	for from := range f.n {
		for i := range stressMessages {
			m := messageID{from, s.Rank(), i}
			k := key{from, f.tag(m)}
			expected[k] = append(expected[k], m)
			if p.anySource {
				k.source = transport.AnySource
			}
			if p.anyTag {
				k.tag = transport.AnyTag
			}
			asks = append(asks, k)
		}
	}
	r.Shuffle(len(asks), func(i, j int) { asks[i], asks[j] = asks[j], asks[i] })
	var open []*op // in the order in which they were posted
	check := func() {
		for _, o := range open {
			k := key{o.ok().Status.Source, o.Status.Tag}
			require.NotEmpty(s, expected[k], "more messages than were sent from %d with tag %d", k.source, k.tag)
			m := expected[k][0]
			expected[k] = expected[k][1:]
			require.Equal(s, m.i, int(binary.LittleEndian.Uint64(o.Buf)), "messages from %d with tag %d out of order", k.source, k.tag)
			o.got(k.source, k.tag, f.request(m).Buf)
		}
		open = open[:0]
	}
	for _, k := range asks {
		room := 8 + 200 + 20_000
		if p.probed {
			found := s.probe(k.source, k.tag).ok().Status
			k, room = key{found.Source, found.Tag}, found.Bytes
		}
		open = append(open, s.recv(k.source, k.tag, make([]byte, room)))
		if r.IntN(8) == 0 {
			check()
		}
	}
	check()
	for k, rest := range expected {
		require.Empty(s, rest, "messages from %d with tag %d that did not come", k.source, k.tag)
	}
}
