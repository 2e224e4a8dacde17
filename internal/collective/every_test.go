package collective

import (
	"encoding/binary"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/buildtags"
	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/local"
)

// A call is an operation of n ranks. Length counts the elements, of 4 bytes, of a part or of
// the whole.
type call struct {
	n, root, length int
	inPlace         bool
	op              Op
	ordered         bool
}

// uneven returns parts of which some are empty: rank r's length is r%3 times c.length.
func (c call) uneven() Parts {
	p := make(Parts, c.n+1)
	for r := range c.n {
		p[r+1] = p[r] + 4*(r%3*c.length)
	}
	return p
}

// value returns rank r's value. Each element is different.
func (c call) value(r, length int) []byte {
	b := make([]byte, 4*length)
	for i := range length {
		binary.LittleEndian.PutUint32(b[4*i:], uint32(i<<16|r<<8|r))
	}
	return b
}

// order returns an Op that combines intervals of ranks. The last of left and the first of right
// must be neighbours.
func order(t *testing.T) Op {
	return func(dst, left, right []byte) {
		for i := 0; i < len(dst); i += 4 {
			l, r := binary.LittleEndian.Uint32(left[i:]), binary.LittleEndian.Uint32(right[i:])
			if l&0xff+1 != r>>8&0xff || l>>16 != r>>16 {
				t.Errorf("combines %x and %x", l, r)
			}
			binary.LittleEndian.PutUint32(dst[i:], l&0xffffff00|r&0xff)
		}
	}
}

func add(dst, left, right []byte) {
	for i := 0; i < len(dst); i += 4 {
		binary.LittleEndian.PutUint32(dst[i:], binary.LittleEndian.Uint32(left[i:])+binary.LittleEndian.Uint32(right[i:]))
	}
}

// result returns the combination of the values of ranks first to last, one after another.
func (c call) result(first, last int) []byte {
	sum := c.value(first, c.length)
	for r := first + 1; r <= last; r++ {
		c.op(sum, sum, c.value(r, c.length))
	}
	return sum
}

// A side is one rank's part of a call: its algorithm, where its result will be, and the result
// that is wanted; nil if it has none. Send must not change, unless the result comes there.
type side struct {
	algorithm Algorithm
	send      []byte
	got, want []byte
}

// side returns a rank's part of an operation.
func (c call) side(op operation, algorithm step, rank int, exclusive bool) side {
	a := &Call{algorithm: algorithm, exclusive: exclusive}
	if rooted(op) {
		a.root = c.root
	}
	s := side{algorithm: a}
	switch op {
	case bcast:
		a.Recv = make([]byte, 4*c.length)
		if rank == c.root {
			a.Recv = c.value(rank, c.length)
		}
		s.want = c.value(c.root, c.length)
	case reduce, allreduce, scan:
		a.Reduction = Reduction{Send: c.value(rank, c.length), Recv: make([]byte, 4*c.length), Op: c.op, Element: 4, Ordered: c.ordered}
		if c.inPlace {
			a.Recv = a.Send
		}
		switch {
		case op == reduce && rank != c.root:
			a.Recv = nil
		case op != scan:
			s.want = c.result(0, c.n-1)
		case !exclusive:
			s.want = c.result(0, rank)
		case rank > 0:
			s.want = c.result(0, rank-1)
		}
	case reduceScatter:
		a.parts = c.uneven()
		c.length = a.parts[c.n] / 4
		a.Reduction = Reduction{Send: c.value(rank, c.length), Op: c.op, Element: 4}
		a.Recv = make([]byte, len(a.parts.part(a.Send, rank)))
		s.want = a.parts.part(c.result(0, c.n-1), rank)
	case allgather, allgatherv, gather:
		parts := c.equal()
		if op == allgatherv {
			parts = c.uneven()
			a.parts = parts
		}
		part := func(r int) []byte { return c.value(r, (parts[r+1]-parts[r])/4) }
		a.Send, a.Recv = part(rank), make([]byte, parts[c.n])
		if c.inPlace {
			copy(parts.part(a.Recv, rank), a.Send)
			a.Send = parts.part(a.Recv, rank)
		}
		if op == gather && rank != c.root {
			a.Recv = nil
			break
		}
		s.want = []byte{}
		for r := range c.n {
			s.want = append(s.want, part(r)...)
		}
	case alltoall:
		a.Send, a.Recv = c.value(rank, c.n*c.length), make([]byte, 4*c.n*c.length)
		s.want = []byte{}
		for r := range c.n {
			s.want = append(s.want, c.equal().part(c.value(r, c.n*c.length), rank)...)
		}
	case scatter:
		all := c.value(c.root, c.n*c.length)
		a.Recv, s.want = make([]byte, 4*c.length), c.equal().part(all, rank)
		if rank == c.root {
			a.Send = all
		}
	}
	if algorithm == nil {
		a.onBoard(op)
	}
	s.send = a.Send
	if s.want != nil {
		s.got = a.Recv
	}
	return s
}

// equal returns parts of c.length elements each.
func (c call) equal() Parts {
	p := make(Parts, c.n+1)
	for r := range p {
		p[r] = 4 * r * c.length
	}
	return p
}

func (c call) split(b []byte) (parts [][]byte) {
	for r := range c.n {
		parts = append(parts, c.equal().part(b, r))
	}
	return parts
}

// tested is an algorithm that exchanges buffers.
type tested struct {
	name     string
	rooted   bool // the operation has a root
	reorders bool // it does not keep the order of ranks, except in reductions to rank 0
	least    int  // number of ranks that it is for
	side     func(c call, rank int) side
}

// apart is a Call on a board where ranks do not see each other's buffers. The bytes go by messages.
type apart struct{ *Call }

func (a apart) Step(k int, x *Exchange) bool {
	m, from := &a.meeting, 0
	if a.share = a.needs(x.size); k == 0 && a.share > 0 && a.combines() {
		a.keepState()
		a.state = &state{arrived: x.Scratch(x.size * a.share)}
	}
	for r := range x.size {
		switch needs := r != x.rank && m.Gives(r, x.rank); {
		case needs && k == 0:
			x.Take(r)
		case needs:
			if err := a.Take(r, x.Taken(from)); err != nil {
				panic(err)
			}
			from++
		}
	}
	for r := range x.size {
		if k == 0 && r != x.rank && m.Gives(x.rank, r) {
			x.Send(r, a.For(r))
		}
	}
	if k > 0 && a.share > 0 {
		a.finish(x.rank)
	}
	return k == 0
}

func rooted(op operation) bool { return op == bcast || op == reduce || op == gather || op == scatter }

// every returns all algorithms that exchange buffers.
func every() []tested {
	all := []tested{{"Alltoall linear", false, false, 1, func(c call, rank int) side {
		s := c.side(alltoall, alltoallDirect, rank, false)
		s.algorithm = &Linear{c.split(s.send), c.split(s.got)}
		return s
	}}}
	for i, o := range Operations {
		op := operation(i)
		for _, a := range o.Algorithms {
			least := 1
			if a.step == nil { // one rank needs no board
				least = 2
			}
			for name, machine := range map[string]func(rank int) int{"in pairs": func(r int) int { return r / 2 }, "in turn": func(r int) int { return r % 3 }, "at the end": func(r int) int { return max(3, r) }} { // where ranks are
				if a.Name == "machines" {
					all = append(all, tested{o.Name + " " + name, rooted(op), name == "in turn", 1, func(c call, rank int) side {
						s := c.side(op, a.step, rank, false)
						if d := divisionOf(rank, c.n, machine); d != nil && (d.inOrder || !c.ordered) {
							s.algorithm.(*Call).division = d
						}
						return s
					}})
				}
			}
			for name, exclusive := range map[string]bool{o.Name: false, "exclusive " + o.Name: true} {
				if exclusive && op != scan {
					continue
				}
				all = append(all, tested{name + " " + a.Name, rooted(op), op == reduce && a.Name == "chain", least, func(c call, rank int) side {
					return c.side(op, a.step, rank, exclusive)
				}})
				if a.step == nil {
					all = append(all, tested{name + " apart", rooted(op), false, 2, func(c call, rank int) side {
						s := c.side(op, nil, rank, exclusive)
						s.algorithm = apart{s.algorithm.(*Call)}
						return s
					}})
				}
			}
		}
	}
	return all
}

// shortSegments makes chains of buffers that are not long.
func shortSegments(t *testing.T) {
	before := chainSegment
	chainSegment = 28
	t.Cleanup(func() { chainSegment = before })
}

// Every algorithm does what its operation promises, with any number of ranks and elements, any
// root, in place or not.
func TestEvery(t *testing.T) {
	shortSegments(t)
	for _, a := range every() {
		t.Run(a.name, func(t *testing.T) {
			for n := a.least; n <= most(17, 9); n++ {
				synctest.Test(t, func(t *testing.T) { a.doesAll(t, n) })
			}
		})
	}
}

// doesAll calls the algorithm with n ranks and all kinds of arguments.
func (a tested) doesAll(t *testing.T, n int) {
	comms, tag := local.New(n), -2
	for _, length := range []int{0, 1, 2, 7, n, 1500} {
		for _, inPlace := range []bool{false, true} {
			for root := range n {
				if root > 0 && (!a.rooted || root > 2 && root != n-1) {
					continue
				}
				c := call{n: n, root: root, length: length, inPlace: inPlace, op: order(t), ordered: true}
				if a.reorders && !(a.rooted && root == 0) {
					c.op, c.ordered = add, false
				}
				tag--
				a.does(t, comms, tag, c)
			}
		}
	}
	for _, c := range comms {
		require.Empty(t, transport.Pending(c))
	}
}

// does makes a call, and checks what each rank gets and that it keeps what it sends.
func (a tested) does(t *testing.T, comms []*local.Comm, tag int, c call) {
	sides, sent := make([]side, c.n), make([][]byte, c.n)
	for r := range sides {
		sides[r] = a.side(c, r)
		sent[r] = slices.Clone(sides[r].send)
	}
	for r, err := range run(comms, tag, func(r int) Algorithm { return sides[r].algorithm }) {
		require.NoError(t, err)
		require.Equal(t, sides[r].want, sides[r].got, "%d elements, root %d, rank %d of %d", c.length, c.root, r, c.n)
		if !c.inPlace {
			require.Equal(t, sent[r], sides[r].send, "Send has changed")
		}
	}
}

// most returns how many ranks a test has: fewer under the race detector, which takes ten times
// as long.
func most(ranks, race int) int {
	if buildtags.Race {
		return race
	}
	return ranks
}

// counting calls before each request of a rank, with the request's number.
type counting struct {
	*local.Comm
	requests atomic.Int32
	before   func(k int)
}

func (c *counting) TrySend(int, int, transport.Epoch, signature.Word, []byte) bool { return false }
func (c *counting) Isend(r *transport.Request) {
	c.before(int(c.requests.Add(1)))
	c.Comm.Isend(r)
}
func (c *counting) Irecv(r *transport.Request) {
	c.before(int(c.requests.Add(1)))
	c.Comm.Irecv(r)
}

func (c *counting) Meet(r *transport.Request) bool {
	c.before(int(c.requests.Add(1)))
	return c.Comm.Meet(r)
}

// If an error comes before any request of any rank, every rank's operation ends with the error,
// or has ended before. No request is left, and all buffers are free: the test overwrites the
// caller's buffers, and the race detector would report another access.
func TestEveryIsInterrupted(t *testing.T) {
	shortSegments(t)
	for _, a := range every() {
		t.Run(a.name, func(t *testing.T) {
			for n := a.least; n <= most(5, 3); n++ {
				for k := range 2 * n {
					victim, length := k/2, []int{100, 1500}[k%2] // a root does not wait for 100 elements
					for request := 1; a.isInterrupted(t, n, length, victim, request); request++ {
					}
				}
			}
		})
	}
}

// isInterrupted makes a call of n ranks in which an error comes before a request of a rank, and
// says whether it came.
func (a tested) isInterrupted(t *testing.T, n, length, victim, request int) (come bool) {
	cause := errors.New("an error")
	c := call{n: n, root: n / 2, length: length, op: add}
	comms := local.New(n)
	sides, dones, hold := make([]side, n), make([]ended, n), make([]Exchange, n)
	for r := range n {
		sides[r], dones[r] = a.side(c, r), make(ended, 1)
	}
	for r := range n {
		begin(&hold[r], &counting{Comm: comms[r], before: func(i int) {
			if r == victim && i == request {
				come = true
				for _, c := range comms {
					c.Advance(0, cause)
				}
			}
		}}, 0, -2, sides[r].algorithm, dones[r])
	}
	for r, done := range dones {
		select {
		case err := <-done:
			if err != nil {
				require.Equal(t, cause, err)
				require.True(t, come)
			}
		default:
			require.Fail(t, "it has not ended", "rank %d of %d, request %d of rank %d", r, n, request, victim)
		}
		require.Empty(t, transport.Pending(comms[r]))
		require.Empty(t, hold[r].borrowed)
	}
	return come
}
