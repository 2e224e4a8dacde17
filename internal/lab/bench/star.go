package main

import (
	"context"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
)

// A star is the simplest form of collectives over Send and Recv: a root receives from all ranks and
// sends to all.
type star struct {
	buffers
	all, spread []float64 // parts of all ranks, at ranks that may be the root
	fs          []future.Waiter
}

func newStar(c *mpicx.Comm, e int) *star { return &star{buffers: buffers{c: c, e: e}} }

func (s *star) vectors(e int) {
	s.send, s.recv = ones(e), ones(e)
}

// gatherAt collects every rank's send in the root's all.
func (s *star) gatherAt(ctx context.Context, root int, send, all []float64) {
	if s.c.Rank() != root {
		mpicx.Send(s.c, send, root, 0).MustWait(ctx)
		return
	}
	s.fs = s.fs[:0]
	for r := range s.c.Size() {
		if part := all[r*len(send):][:len(send)]; r == root {
			copy(part, send)
		} else {
			s.fs = append(s.fs, mpicx.Recv(s.c, part, r, 0))
		}
	}
	mpicx.Throw(future.WaitAll(ctx, s.fs...))
}

// sendTo sends part(r) from the root to each rank r, into recv.
func (s *star) sendTo(ctx context.Context, root int, part func(r int) []float64, recv []float64) {
	if s.c.Rank() != root {
		mpicx.Recv(s.c, recv, root, 0).MustWait(ctx)
		return
	}
	s.fs = s.fs[:0]
	for r := range s.c.Size() {
		if r != root {
			s.fs = append(s.fs, mpicx.Send(s.c, part(r), r, 0))
		}
	}
	mpicx.Throw(future.WaitAll(ctx, s.fs...))
}

// combineAt combines every rank's send in the root's recv, one rank after the other. After each
// rank it calls then, if it is not nil.
func (s *star) combineAt(ctx context.Context, root int, then func(r int)) {
	if s.c.Rank() != root {
		mpicx.Send(s.c, s.send, root, 0).MustWait(ctx)
		return
	}
	if s.all == nil {
		s.all = ones(len(s.send))
	}
	for r := range s.c.Size() {
		from := s.send
		if r != root {
			from = s.all
			mpicx.Recv(s.c, from, r, 0).MustWait(ctx)
		}
		if r == 0 {
			copy(s.recv, from)
		} else {
			combine(s.recv, from)
		}
		if then != nil && r != root {
			then(r)
		}
	}
}

func combine(dst, src []float64) {
	for i, v := range src {
		dst[i] += v
	}
}

func whole(b []float64) func(int) []float64 { return func(int) []float64 { return b } }

func (s *star) parts(b []float64) func(int) []float64 {
	n := len(b) / s.c.Size()
	return func(r int) []float64 { return b[r*n:][:n] }
}

func (s *star) barrier() call {
	return func(ctx context.Context, _ int) {
		s.gatherAt(ctx, 0, nil, nil)
		s.sendTo(ctx, 0, whole(nil), nil)
	}
}

func (s *star) bcast() call {
	s.send = ones(s.e)
	return func(ctx context.Context, root int) { s.sendTo(ctx, root, whole(s.send), s.send) }
}

func (s *star) reduce() call {
	s.vectors(s.e)
	return func(ctx context.Context, root int) { s.combineAt(ctx, root, nil) }
}

func (s *star) allreduce() call {
	s.vectors(s.e)
	return func(ctx context.Context, _ int) {
		s.combineAt(ctx, 0, nil)
		s.sendTo(ctx, 0, whole(s.recv), s.recv)
	}
}

func (s *star) allgather() call {
	s.send, s.all = ones(s.e), ones(s.c.Size()*s.e)
	return func(ctx context.Context, _ int) {
		s.gatherAt(ctx, 0, s.send, s.all)
		s.sendTo(ctx, 0, whole(s.all), s.all)
	}
}

func (s *star) gather() call {
	s.send, s.all = ones(s.e), s.atRoots()
	return func(ctx context.Context, root int) { s.gatherAt(ctx, root, s.send, s.all) }
}

func (s *star) scatter() call {
	s.recv, s.all = ones(s.e), s.atRoots()
	part := func(r int) []float64 { return s.all[r*s.e:][:s.e] }
	return func(ctx context.Context, root int) {
		if s.c.Rank() == root {
			copy(s.recv, part(root))
		}
		s.sendTo(ctx, root, part, s.recv)
	}
}

// alltoall sends all parts to the root, which sorts them by receiver and sends them on.
func (s *star) alltoall() call {
	n := s.c.Size()
	s.vectors(s.buffers.all())
	if s.c.Rank() == 0 {
		s.all, s.spread = ones(n*len(s.send)), ones(n*len(s.send))
	}
	b := len(s.send) / n
	return func(ctx context.Context, _ int) {
		s.gatherAt(ctx, 0, s.send, s.all)
		if s.c.Rank() == 0 {
			for from := range n {
				for to := range n {
					copy(s.spread[(to*n+from)*b:][:b], s.all[(from*n+to)*b:])
				}
			}
			copy(s.recv, s.spread)
		}
		s.sendTo(ctx, 0, s.parts(s.spread), s.recv)
	}
}

func (s *star) reduceScatter() call {
	s.vectors(s.buffers.all())
	result := ones(len(s.recv) / s.c.Size())
	return func(ctx context.Context, _ int) {
		s.combineAt(ctx, 0, nil)
		if s.c.Rank() == 0 {
			copy(result, s.recv)
		}
		s.sendTo(ctx, 0, s.parts(s.recv), result)
	}
}

func (s *star) scan() call {
	s.vectors(s.e)
	return func(ctx context.Context, _ int) {
		s.combineAt(ctx, 0, func(r int) { mpicx.Send(s.c, s.recv, r, 0).MustWait(ctx) })
		if s.c.Rank() != 0 {
			mpicx.Recv(s.c, s.recv, 0, 0).MustWait(ctx)
		}
	}
}
