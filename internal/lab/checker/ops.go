package main

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
)

// Operations.
const (
	opBarrier = iota
	opBcast
	opReduce
	opAllreduce
	opAllgather
	opAlltoall
	opScan
	opRing      // Recv from the left, Send to the right
	opRingSsend // the same, with Ssend
	opRingLong  // the same, of more bytes than are buffered
	opRingAny   // the same, by WaitAny
	opRingTest  // the same, by Test
	opRingValue // the same, by SendValue and RecvValue
	opGatherAny // to a root, by AnySource
	opHelper    // the same, in a goroutine, beside a Barrier
	ops
)

var opNames = [...]string{"barrier", "bcast", "reduce", "allreduce", "allgather", "alltoall", "scan",
	"ring", "ringSsend", "ringLong", "ringAny", "ringTest", "ringValue", "gatherAny", "helper"}

const (
	tagRing  = 7
	tagNever = 8 // no rank sends with it
	tagSelf  = 9 // nor with this; ranks receive from themselves, which needs no rank that may have returned
	tagStep  = 100
)

// operation is a step's operation at one rank. The values that it moves contain the step, the
// iteration and the sender, so that a stale one is found.
type operation struct {
	*rank
	e      *env
	s      *step
	c      *inst
	n, me  int
	base   int64
	begin  int64
	checks []func() error // run once it has succeeded
	bufs   [][]int64
}

func (r *rank) operate(s *step, e *env, c *inst) error {
	h := fnv.New32a()
	fmt.Fprint(h, c.name, s.id, e.path)
	o := &operation{rank: r, e: e, s: s, c: c, n: c.Size(), me: c.Rank(), base: int64(h.Sum32()) << 12, begin: r.now()}
	err := o.do()
	v := event{what: opNames[s.arg], comm: c, begin: o.begin, err: err, quiet: s.arg != opRingTest && s.arg != opRingAny, pends: s.arg == opGatherAny}
	if !r.noteInGroup(&v, e) {
		return err
	}
	if err == nil {
		for _, check := range o.checks {
			if err := check(); err != nil {
				r.failf("P3", "%s at rank %d: %v", v.what, r.id, err)
			}
		}
	}
	ended := e.ctx.Err() != nil && context.Cause(e.ctx) == err // by an error group, whose error it is: the operation stays pending
	if err == nil || v.of != "" && c.derivedFrom(v.of) && !ended {
		// Every operation begun has ended (P4), so the buffers are the program's again (F4).
		o.scribble()
	}
	return err
}

// value is what a rank contributes to the operation.
func (o *operation) value(rank int) int64 { return o.base + int64(rank) }

// buf makes a buffer for the operation.
func (o *operation) buf(v ...int64) []int64 {
	o.bufs = append(o.bufs, v)
	return v
}

func (o *operation) space(n int) []int64 { return o.buf(make([]int64, n)...) }

// scribble overwrites all buffers, and checks at the end of the run that nothing else wrote to
// them.
func (o *operation) scribble() {
	what, bufs := fmt.Sprintf("%s on %s", opNames[o.s.arg], o.c.name), o.bufs
	for _, b := range bufs {
		for i := range b {
			b[i] = -1
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.late = append(o.late, func() {
		for _, b := range bufs {
			for i, v := range b {
				if v != -1 {
					o.failf("F4", "%s at rank %d: element %d of a buffer was written after the operation had ended", what, o.id, i)
					return
				}
			}
		}
	})
}

// expect compares buf with the function of, element by element, after the operation.
func (o *operation) expect(buf []int64, of func(i int) int64) {
	o.checks = append(o.checks, func() error {
		for i, v := range buf {
			if want := of(i); v != want {
				return fmt.Errorf("element %d is %d, expected %d", i, v, want)
			}
		}
		return nil
	})
}

func (o *operation) do() error {
	ctx, c := o.context(o.s, o.e, o.c), o.c.Comm
	root := o.s.id % o.n
	mine := func() []int64 { return o.buf(o.value(o.me)) }
	sum := func(last int) func(int) int64 {
		return func(int) int64 {
			total := int64(0)
			for r := range last + 1 {
				total += o.value(r)
			}
			return total
		}
	}
	switch o.s.arg {
	case opBarrier:
		return c.Barrier().Wait(ctx)
	case opBcast:
		b := mine()
		o.expect(b, func(int) int64 { return o.value(root) })
		return mpicx.Bcast(c, b, root).Wait(ctx)
	case opReduce:
		out := o.space(1)
		if o.me == root {
			o.expect(out, sum(o.n-1))
		}
		return mpicx.Reduce(c, mine(), out, mpicx.Sum, root).Wait(ctx)
	case opAllreduce:
		out := o.space(1)
		o.expect(out, sum(o.n-1))
		return mpicx.Allreduce(c, mine(), out, mpicx.Sum).Wait(ctx)
	case opAllgather:
		out := o.space(o.n)
		o.expect(out, o.value)
		return mpicx.Allgather(c, mine(), out).Wait(ctx)
	case opAlltoall:
		in, out := o.space(o.n), o.space(o.n)
		for i := range in {
			in[i] = o.value(o.me) + int64(i)<<6
		}
		o.expect(out, func(i int) int64 { return o.value(i) + int64(o.me)<<6 })
		return mpicx.Alltoall(c, in, out).Wait(ctx)
	case opScan:
		out := o.space(1)
		o.expect(out, sum(o.me))
		return mpicx.Scan(c, mine(), out, mpicx.Sum).Wait(ctx)
	case opRingValue:
		left, right := o.neighbours()
		recv := mpicx.RecvValue[int64](c, left, tagRing)
		send := mpicx.SendValue(c, o.value(o.me), right, tagRing)
		got, err := recv.Get(ctx)
		if err != nil {
			return err
		}
		o.expect(o.buf(got), func(int) int64 { return o.value(left) })
		return send.Wait(ctx)
	case opGatherAny:
		return o.gatherAny(ctx, root)
	case opHelper:
		// One goroutine waits at a time: if several did, each might be told of a different error,
		// and the program would have to handle all of them.
		recv, send := o.ring()
		barrier := c.Barrier()
		var helper errgroup.Group
		helper.Go(func() error { return future.WaitAll(ctx, recv, send) })
		if err := helper.Wait(); err != nil { // nil also if the process dies there, which ends the goroutine
			return err
		}
		return barrier.Wait(ctx)
	}
	recv, send := o.ring()
	switch o.s.arg {
	case opRingAny:
		fs := []future.Waiter{recv, send}
		for len(fs) > 0 {
			i, err := future.WaitAny(ctx, fs...)
			if err != nil {
				return err
			}
			fs = append(fs[:i:i], fs[i+1:]...)
		}
		return nil
	case opRingTest:
		for _, f := range []future.Waiter{recv, send} {
			for polls := 0; ; polls++ {
				done, err := f.Test()
				if err != nil {
					return err
				}
				if done {
					break
				}
				if polls == 200 { // long after all others have done their part
					return f.Wait(ctx)
				}
				time.Sleep(tick)
			}
		}
		return nil
	}
	return future.WaitAll(ctx, recv, send)
}

func (o *operation) neighbours() (left, right int) { return (o.me + o.n - 1) % o.n, (o.me + 1) % o.n }

// ring begins a receive from the left and a send to the right.
func (o *operation) ring() (recv, send future.Waiter) {
	left, right := o.neighbours()
	n := 1
	if o.s.arg == opRingLong {
		n = 600
	}
	in, out := o.space(n), o.space(n)
	for i := range out {
		out[i] = o.value(o.me)
	}
	o.expect(in, func(int) int64 { return o.value(left) })
	tag := tagRing
	if o.e.tag != 0 {
		tag = o.e.tag
	}
	recv = mpicx.Recv(o.c.Comm, in, left, tag)
	if o.s.arg == opRingSsend {
		return recv, mpicx.Ssend(o.c.Comm, out, right, tag)
	}
	return recv, mpicx.Send(o.c.Comm, out, right, tag)
}

// gatherAny receives from all others at the root, in any order.
func (o *operation) gatherAny(ctx context.Context, root int) error {
	if o.me != root {
		return mpicx.Send(o.c.Comm, o.buf(o.value(o.me)), root, tagStep+o.s.id).Wait(ctx)
	}
	senders := make(map[int]bool)
	for r := range o.n {
		if r != root {
			senders[r] = true
		}
	}
	for len(senders) > 0 {
		if o.byHand && !living(senders, o.c.Failed()) {
			return mpicx.ErrProcFailedPending // once acknowledged, deaths would not end the next receive
		}
		b := o.space(1)
		status, err := o.fromAnybody(ctx, b, senders)
		if err != nil {
			return err
		}
		delete(senders, status.Source)
		o.expect(b, func(int) int64 { return o.value(status.Source) })
	}
	return nil
}

// fromAnybody receives from any rank. Under ErrorsReturn it acknowledges deaths while living ranks
// may still send (H3).
func (o *operation) fromAnybody(ctx context.Context, b []int64, senders map[int]bool) (mpicx.Status, error) {
	c := o.c.Comm
	f := mpicx.Recv(c, b, mpicx.AnySource, tagStep+o.s.id)
	for {
		status, err := f.Get(ctx)
		if err != mpicx.ErrProcFailedPending {
			return status, err
		}
		failed := c.Failed()
		if !living(senders, failed) {
			return status, err
		}
		if n := c.AckFailed(len(failed)); n < len(failed) {
			o.failf("H3", "AckFailed(%d) on %s at rank %d returns %d", len(failed), o.c.name, o.id, n)
			return status, err
		}
	}
}

// living reports whether some of the ranks have not failed.
func living(ranks map[int]bool, failed []int) bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(ranks)), func(r int) bool { return !slices.Contains(failed, r) })
}
