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

// reduction returns a side's Reduction, whose result has this many bytes.
func (c call) reduction(rank, bytes int) (r Reduction) {
	r = Reduction{Send: c.value(rank, c.length), Op: c.op, Element: 4, Ordered: c.ordered}
	r.Acc = make([]byte, bytes)
	if c.inPlace {
		r.Acc = r.Send
	}
	return r
}

func (c call) allreduce(rank int, of func(Reduction) Algorithm) side {
	r := c.reduction(rank, 4*c.length)
	return side{of(r), r.Send, r.Acc, c.result(0, c.n-1)}
}

func (c call) reduce(rank int, of func(Reduction) Algorithm) side {
	r := c.reduction(rank, 4*c.length)
	if rank == c.root {
		return side{of(r), r.Send, r.Acc, c.result(0, c.n-1)}
	}
	r.Acc = nil
	return side{of(r), r.Send, nil, nil}
}

func (c call) reduceScatter(rank int, parts Parts, of func(Reduction) Algorithm) side {
	c.length = parts[c.n] / 4
	r := Reduction{Send: c.value(rank, c.length), Op: c.op, Element: 4}
	r.Acc = make([]byte, len(parts.of(r.Send, rank)))
	return side{of(r), r.Send, r.Acc, parts.of(c.result(0, c.n-1), rank)}
}

func (c call) bcast(rank int, of func(buf []byte) Algorithm) side {
	buf := make([]byte, 4*c.length)
	if rank == c.root {
		buf = c.value(rank, c.length)
	}
	return side{of(buf), nil, buf, c.value(c.root, c.length)}
}

func (c call) allgather(rank int, parts Parts, of func(send, recv []byte) Algorithm) side {
	part := func(r int) []byte { return c.value(r, (parts[r+1]-parts[r])/4) }
	send, recv := part(rank), make([]byte, parts[c.n])
	all := []byte{}
	for r := range c.n {
		all = append(all, part(r)...)
	}
	if c.inPlace {
		copy(parts.of(recv, rank), send)
		send = parts.of(recv, rank)
	}
	return side{of(send, recv), send, recv, all}
}

func (c call) equal() Parts {
	p := make(Parts, c.n+1)
	for r := range p {
		p[r] = 4 * r * c.length
	}
	return p
}

func (c call) alltoall(rank int, of func(send, recv []byte) Algorithm) side {
	send, recv := c.value(rank, c.n*c.length), make([]byte, 4*c.n*c.length)
	all := []byte{}
	for r := range c.n {
		all = append(all, c.equal().of(c.value(r, c.n*c.length), rank)...)
	}
	return side{of(send, recv), send, recv, all}
}

func (c call) split(b []byte) (parts [][]byte) {
	for r := range c.n {
		parts = append(parts, c.equal().of(b, r))
	}
	return parts
}

// every has all algorithms that exchange buffers, and their operations.
var every = []struct {
	name     string
	rooted   bool // the operation has a root
	reorders bool // it does not keep the order of ranks, except in reductions to rank 0
	side     func(c call, rank int) side
}{
	{"Bcast tree", true, false, func(c call, r int) side {
		return c.bcast(r, func(b []byte) Algorithm { return &Bcast{Buf: b, Root: c.root} })
	}},
	{"Bcast scatter", true, false, func(c call, r int) side {
		return c.bcast(r, func(b []byte) Algorithm { return &BcastScatter{Buf: b, Root: c.root} })
	}},
	{"Bcast chain", true, false, func(c call, r int) side {
		return c.bcast(r, func(b []byte) Algorithm { return &BcastChain{Buf: b, Root: c.root, Segment: 28} })
	}},
	{"Bcast star", true, false, func(c call, r int) side {
		return c.bcast(r, func(b []byte) Algorithm { return &BcastStar{Buf: b, Root: c.root} })
	}},
	{"Reduce star", true, false, func(c call, r int) side {
		return c.reduce(r, func(red Reduction) Algorithm { return &ReduceStar{Reduction: red, Root: c.root} })
	}},
	{"Allreduce star", false, false, func(c call, r int) side {
		return c.allreduce(r, func(red Reduction) Algorithm { return &AllreduceStar{ReduceStar: ReduceStar{Reduction: red}} })
	}},
	{"ReduceScatter star", false, false, func(c call, r int) side {
		return c.reduceScatter(r, c.uneven(), func(red Reduction) Algorithm {
			return &ReduceScatterStar{Reduction: red, Parts: c.uneven()}
		})
	}},
	{"Allgather star", false, false, func(c call, r int) side {
		return c.allgather(r, c.equal(), func(send, recv []byte) Algorithm {
			return &AllgatherStar{GatherDirect: GatherDirect{Send: send, Recv: recv}}
		})
	}},
	{"Alltoall star", false, false, func(c call, r int) side {
		return c.alltoall(r, func(send, recv []byte) Algorithm { return &AlltoallStar{Send: send, Recv: recv} })
	}},
	{"Reduce tree", true, false, func(c call, r int) side {
		return c.reduce(r, func(red Reduction) Algorithm { return &Reduce{Reduction: red, Root: c.root} })
	}},
	{"Reduce chain", true, true, func(c call, r int) side {
		return c.reduce(r, func(red Reduction) Algorithm { return &ReduceChain{Reduction: red, Root: c.root, Segment: 28} })
	}},
	{"Allreduce tree", false, false, func(c call, r int) side {
		return c.allreduce(r, func(red Reduction) Algorithm { return &AllreduceTree{Reduce: Reduce{Reduction: red}} })
	}},
	{"Allreduce doubling", false, false, func(c call, r int) side {
		return c.allreduce(r, func(red Reduction) Algorithm { return &AllreduceDoubling{Reduction: red} })
	}},
	{"Allreduce Rabenseifner", false, false, func(c call, r int) side {
		return c.allreduce(r, func(red Reduction) Algorithm { return &Rabenseifner{Reduction: red} })
	}},
	{"Allreduce parts", false, false, func(c call, r int) side {
		return c.allreduce(r, func(red Reduction) Algorithm { return &AllreduceParts{Reduction: red} })
	}},
	{"ReduceScatter direct", false, false, func(c call, r int) side {
		return c.reduceScatter(r, c.uneven(), func(red Reduction) Algorithm {
			return &ReduceScatterDirect{Send: red.Send, Recv: red.Acc, Parts: c.uneven(), Op: red.Op}
		})
	}},
	{"ReduceScatter tree", false, false, func(c call, r int) side {
		return c.reduceScatter(r, c.uneven(), func(red Reduction) Algorithm {
			return &ReduceScatterTree{Reduction: red, Parts: c.uneven()}
		})
	}},
	{"Allgather tree", false, false, func(c call, r int) side {
		return c.allgather(r, c.equal(), func(send, recv []byte) Algorithm { return &Allgather{Gather: Gather{Send: send, Recv: recv}} })
	}},
	{"Allgatherv tree", false, false, func(c call, r int) side {
		return c.allgather(r, c.uneven(), func(send, recv []byte) Algorithm {
			return &Allgatherv{Send: send, Recv: recv, At: c.uneven()}
		})
	}},
	{"Allgatherv direct", false, false, func(c call, r int) side {
		return c.allgather(r, c.uneven(), func(send, recv []byte) Algorithm {
			return &AllgatherDirect{Send: send, Buf: recv, Parts: c.uneven()}
		})
	}},
	{"Alltoall direct", false, false, func(c call, r int) side {
		return c.alltoall(r, func(send, recv []byte) Algorithm { return &Linear{c.split(send), c.split(recv)} })
	}},
	{"Alltoall Bruck", false, false, func(c call, r int) side {
		return c.alltoall(r, func(send, recv []byte) Algorithm { return &AlltoallBruck{Send: send, Recv: recv} })
	}},
	{"Gather tree", true, false, func(c call, r int) side {
		s := c.allgather(r, c.equal(), func(send, recv []byte) Algorithm { return &Gather{Send: send, Recv: recv, Root: c.root} })
		if r != c.root {
			s.got, s.want = nil, nil
		}
		return s
	}},
	{"Gather direct", true, false, func(c call, r int) side {
		s := c.allgather(r, c.equal(), func(send, recv []byte) Algorithm { return &GatherDirect{Send: send, Recv: recv, Root: c.root} })
		if r != c.root {
			s.got, s.want = nil, nil
		}
		return s
	}},
	{"Scatter direct", true, false, func(c call, r int) side {
		send, recv := c.value(c.root, c.n*c.length), make([]byte, 4*c.length)
		return side{&ScatterDirect{Send: send, Recv: recv, Root: c.root}, nil, recv, c.equal().of(send, r)}
	}},
	{"Scatter tree", true, false, func(c call, r int) side {
		send, recv := c.value(c.root, c.n*c.length), make([]byte, 4*c.length)
		return side{&Scatter{Send: send, Recv: recv, Root: c.root}, nil, recv, c.equal().of(send, r)}
	}},
	{"Scan", false, false, func(c call, r int) side {
		red := c.reduction(r, 4*c.length)
		return side{&Scan{Reduction: red}, red.Send, red.Acc, c.result(0, r)}
	}},
	{"Scan chain", false, false, func(c call, r int) side {
		red := c.reduction(r, 4*c.length)
		return side{&ScanChain{Reduction: red, Segment: 28}, red.Send, red.Acc, c.result(0, r)}
	}},
	{"Exscan chain", false, false, func(c call, r int) side {
		red := c.reduction(r, 4*c.length)
		s := side{&ScanChain{Reduction: Reduction{Send: red.Send, Op: red.Op}, Exclusive: true, Result: red.Acc, Segment: 28}, red.Send, red.Acc, nil}
		if r > 0 {
			s.want = c.result(0, r-1)
		} else {
			s.got = nil
		}
		return s
	}},
	{"Exscan", false, false, func(c call, r int) side {
		red := c.reduction(r, 4*c.length)
		s := side{&Scan{Reduction: Reduction{Send: red.Send, Op: red.Op}, Exclusive: true, Result: red.Acc}, red.Send, red.Acc, nil}
		if r > 0 {
			s.want = c.result(0, r-1)
		} else {
			s.got = nil
		}
		return s
	}},
}

// Every algorithm does what its operation promises, with any number of ranks and elements, any
// root, in place or not.
func TestEvery(t *testing.T) {
	for _, a := range every {
		t.Run(a.name, func(t *testing.T) {
			for n := 1; n <= most(17, 9); n++ {
				synctest.Test(t, func(t *testing.T) {
					comms := local.New(n)
					tag := -2
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
								sides := make([]side, n)
								for r := range sides {
									sides[r] = a.side(c, r)
								}
								sent := make([][]byte, n)
								for r, s := range sides {
									sent[r] = slices.Clone(s.send)
								}
								tag--
								for r, err := range run(comms, tag, func(r int) Algorithm { return sides[r].algorithm }) {
									require.NoError(t, err)
									require.Equal(t, sides[r].want, sides[r].got, "%d elements, root %d, rank %d of %d", length, root, r, n)
									if !inPlace {
										require.Equal(t, sent[r], sides[r].send, "Send has changed")
									}
								}
							}
						}
					}
					for _, c := range comms {
						require.Empty(t, transport.Pending(c))
					}
				})
			}
		})
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

// If an error comes before any request of any rank, every rank's operation ends with the error,
// or has ended before. No request is left, and all buffers are free: the test overwrites the
// caller's buffers, and the race detector would report another access.
func TestEveryIsInterrupted(t *testing.T) {
	cause := errors.New("an error")
	for _, a := range every {
		t.Run(a.name, func(t *testing.T) {
			for n := 1; n <= most(5, 3); n++ {
				for victim := range n {
					for k, come := 1, true; come; k++ {
						come = false
						c := call{n: n, root: n / 2, length: 1500, op: add}
						comms := local.New(n)
						sides := make([]side, n)
						dones := make([]ended, n)
						for r := range n {
							sides[r], dones[r] = a.side(c, r), make(ended, 1)
						}
						var hold []*Exchange
						for r := range n {
							x := new(Exchange)
							hold = append(hold, x)
							x.Start(&counting{Comm: comms[r], before: func(i int) {
								if r == victim && i == k {
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
								require.Fail(t, "it has not ended", "rank %d of %d, request %d of rank %d", r, n, k, victim)
							}
							require.Empty(t, transport.Pending(comms[r]))
							require.Empty(t, hold[r].borrowed)
						}
					}
				}
			}
		})
	}
}
