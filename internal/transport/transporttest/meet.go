package transporttest

import (
	"errors"
	"math/rand/v2"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// Calls that meet on a board, where the transport has one. All ranks make the same calls.
var boards = []test{
	{"EachGetsWhatItNeeds", 2, meetAtRandom},
	{"ARootGetsAhead", 2, meetFromARoot},
	{"AnErrorEndsThem", 2, meetAndAdvance},
	{"DifferentCallsAreTold", 2, meetInDifferentCalls},
}

// A Gathering is a call in which each rank gets the bytes of all ranks that it needs, one after the
// other, by rank, its own included.
type Gathering struct {
	transport.Meeting
	rank int
}

// NewGathering returns one rank's part in a Gathering of ranks which have this many bytes each.
func NewGathering(flow transport.Flow, root, rank, ranks int, send []byte) *Gathering {
	g := &Gathering{rank: rank}
	g.Meeting = transport.Meeting{Part: transport.Part{Send: send, Recv: make([]byte, ranks*len(send))}, Bytes: len(send), Flow: flow, Root: root, Carrier: g}
	if g.Gives(rank, rank) {
		g.put(rank, send)
	}
	return g
}

// put stores the bytes of a rank behind those of the ranks before it.
func (g *Gathering) put(from int, bytes []byte) {
	at := 0
	for r := range from {
		if g.Gives(r, g.rank) {
			at += len(g.Send)
		}
	}
	copy(g.Recv[at:], bytes)
}

// Carry is called where ranks see each other's buffers.
func (g *Gathering) Carry(parts []transport.Part, rank int) {
	for to, q := range parts {
		var all []byte
		for from, p := range parts {
			if g.Gives(from, to) {
				all = append(all, p.Send...)
			}
		}
		switch g.Flow {
		case transport.Together, transport.Onward:
			copy(q.Recv, all)
		default:
			if to == rank {
				copy(g.Recv, all)
			}
		}
	}
}

// For is called where they do not, as is Take.
func (g *Gathering) For(int) []byte { return g.Send }

// Take expects as many bytes as the rank itself has.
func (g *Gathering) Take(from int, bytes []byte) error {
	if len(bytes) != len(g.Send) {
		return errors.New("another length")
	}
	g.put(from, bytes)
	return nil
}

// meet has the rank make a call, in which its part has n bytes of a value.
func (s *side) meet(flow transport.Flow, root, n int, value byte) (*op, *Gathering) {
	g := NewGathering(flow, root, s.Rank(), s.Size(), slices.Repeat([]byte{value}, n))
	o := s.op(transport.Request{Meeting: &g.Meeting, Signature: signature.Call{Kind: signature.Gather, Root: root, Count: n}.Word()})
	if s.Comm.(transport.Board).Meet(&o.Request) {
		o.Completed(&o.Request)
	}
	return o, g
}

// checkMet checks what a rank has got in a call in which the value of rank r was value+r.
func (s *side) checkMet(g *Gathering, n int, value byte) {
	s.Helper()
	var want []byte
	for r := range s.Size() {
		if g.Gives(r, s.Rank()) {
			want = append(want, slices.Repeat([]byte{value + byte(r)}, n)...)
		}
	}
	if g.Flow != transport.ToRoot || s.Rank() == g.Root {
		s.same(want, g.Recv[:len(want)], "flow %d, root %d, %d bytes", g.Flow, g.Root, n)
	}
}

// board returns the most bytes of a part, or skips the test.
func (s *side) board() int {
	most := s.Features().Board
	if most == 0 {
		s.Skip("it is no board")
	}
	return min(most, large)
}

// meetAtRandom makes calls of all flows on a communicator and a duplicate of it. Up to 8 of them
// are under way.
func meetAtRandom(s *side) {
	most := s.board()
	random := rand.New(rand.NewPCG(1, 2)) // the same at all ranks
	sides := []*side{s, s.dup(1)}
	var all []func()
	for i := range 400 {
		n := []int{0, 1, 8, 24, 25, 1000, most}[random.IntN(7)]
		on, flow, root := sides[random.IntN(2)], transport.Flow(random.IntN(4)), random.IntN(s.Size())
		o, g := on.meet(flow, root, n, byte(i+s.Rank()))
		all = append(all, func() {
			o.ok()
			on.checkMet(g, n, byte(i))
		})
		if random.IntN(8) == 0 {
			random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			for _, wait := range all {
				wait()
			}
			all = nil
		}
	}
	for _, wait := range all {
		wait()
	}
}

// meetFromARoot has the first rank make calls that need nobody. It gets ahead of the others, but
// not without end.
func meetFromARoot(s *side) {
	s.board()
	ctl := s
	s = s.dup(1)
	const calls = 320
	var all []*op
	if s.Rank() == 0 {
		for i := range calls {
			o, g := s.meet(transport.FromRoot, 0, 8, byte(i))
			all = append(all, o)
			if o.isDone() { // its buffer is free
				clear(g.Send)
			}
		}
		all[0].ok()
		all[calls-1].pending()
		ctl.barrier()
		allOK(all)
		return
	}
	ctl.barrier()
	for i := range calls {
		o, g := s.meet(transport.FromRoot, 0, 8, 0)
		o.ok()
		s.checkMet(g, 8, byte(i))
	}
}

// meetAndAdvance has all ranks but the last make a call, which then ends with the error. The next
// epoch begins anew.
func meetAndAdvance(s *side) {
	s.board()
	ctl, last := s.aloof(), s.Rank() == s.Size()-1
	for round := range 20 {
		if !last {
			o, _ := s.meet(transport.Together, 0, 8, 1)
			ctl.barrier()
			o.pending()
			s.Advance(0, errCause)
			o.fails(errCause)
		} else {
			ctl.barrier()
			s.Advance(0, errCause)
		}
		o, g := s.meet(transport.Together, 0, 8, byte(round+s.Rank()))
		o.ok()
		s.checkMet(g, 8, byte(round))
	}
}

// meetInDifferentCalls has the first two ranks make different calls. Of more ranks only those are
// sure to be told that a message of another call reaches.
func meetInDifferentCalls(s *side) {
	s.board()
	if s.Rank() > 1 {
		return
	}
	s = s.sub(transport.Name{Epoch: s.epoch(), Seq: 1}, []int{0, 1})
	ctl := s.aloof()
	for range 10 {
		n := 8
		if s.Rank() == 0 {
			n = 16
		}
		o, _ := s.meet(transport.Together, 0, n, 1)
		var odd *transport.MismatchError
		require.ErrorAs(s, o.wait(), &odd)
		require.Equal(s, s.Rank() == 0, odd.Source > 0)
		ctl.barrier()
		s.Advance(0, errCause)
		o, g := s.meet(transport.Together, 0, 8, byte(s.Rank()))
		o.ok()
		s.checkMet(g, 8, 0)
	}
}
