package mpicx

import (
	"context"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/internal/ledger"
	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// TryAll is a Try that is collective: it returns nil at all ranks, or an error with the same
// Failures at all ranks. (If a rank is still in a plain Try before it, an error that it raises
// there ends the TryAll of those ahead.) Use it in every loop that retries, and where ranks save a
// state to go back to: see the example, and package checkpoint. It costs a barrier and a reduction
// of one byte.
//
// If ctx ends while this rank waits for the others, that is an error of this rank, which all are
// told: this rank itself by its next operation, if the others are not there yet. So a time limit
// for fn belongs inside fn.
//
// With the ULFM backend a rank may die while the votes are counted. Then TryAll may return nil at
// some ranks and the error of the death at others; the former get that error from their next
// operation. Call Agree where the difference matters.
func (c *Comm) TryAll(ctx context.Context, fn func(context.Context) error) error {
	s, err := c.enter("TryAll", ctx, fn, false)
	if err != nil {
		return err
	}
	defer s.close()
	var stop error
	err = s.run(func(ctx context.Context) error {
		if stop = s.run(fn); stop != nil && !c.isStop(stop) {
			return stop
		}
		return s.succeed(ctx)
	})
	if err == nil { // all have succeeded, and errors from now on are the next scope's
		return stop
	}
	return s.leave("TryAll", err)
}

var tryAll = call{Kind: signature.TryAll}.Word()

// vote is the end of a TryAll: see ledger.Vote.
type vote struct {
	comm  *comm
	entry *ledger.Vote
	epoch transport.Epoch
	tag   int // of the count

	votes   [2]byte // this rank's vote, and the result: 1 is yes
	counted chan struct{}
	err     error // of the count
}

// succeed returns nil once all ranks know that all have called it.
func (s *scope) succeed(ctx context.Context) error {
	c := s.comm
	epoch, err := c.begin("TryAll")
	if err != nil {
		return failed[struct{}](c, err).Wait(ctx)
	}
	met, end := future.New[struct{}]()
	waiting.Of(end.Future()).Keep(&keeper{comm: c, call: "TryAll", mode: ledger.Take, meeting: true})
	barrier := &collective.Exchange{Name: "TryAll", Signature: tryAll}
	// The vote has the first tag. If a rank calls Barrier instead, by mistake, its messages do
	// not match the others' barrier. Otherwise the others would wait for a vote of this rank, no
	// matter which error it gets.
	v := &vote{comm: c, epoch: epoch, tag: transport.CollectiveTag(c.t.Call(epoch, tryAll)), counted: make(chan struct{})}
	barrierTag := transport.CollectiveTag(c.t.Call(epoch, tryAll))
	barrier.Start(c.t, epoch, barrierTag, c.chooser.ByMessages().Barrier(nil), ender(func(err error) {
		end.Complete(struct{}{}, c.failure("TryAll", err))
	}))
	c.proc.feed(func() { v.entry = c.ledger.Ask(v) })
	defer c.proc.feed(func() { v.entry.End() })
	if err := met.Wait(ctx); err != nil {
		c.proc.feed(v.entry.Withdraw)
		return err
	}
	confirmed, given := false, false
	c.proc.feed(func() { confirmed, given = v.entry.Confirm(), v.entry.GivenUp() })
	if given { // another goroutine of this rank was told why
		return mpiErrorf("TryAll", ClassOther, "an error of another communicator has ended the context")
	}
	if confirmed {
		v.start(true)
		err := v.count()
		unanimous := err == nil && v.votes[1] == 1
		c.proc.feed(func() {
			if unanimous {
				s.entry.Close() // before this rank joins a round: its error is the next scope's
			}
			v.entry.Counted()
		})
		if err != nil || unanimous {
			return err
		}
	}
	return v.verdict(ctx)
}

// start casts this rank's vote.
func (v *vote) start(yes bool) {
	if yes {
		v.votes[0] = 1
	}
	vote := collective.Reduction{Recv: v.votes[:1], Op: unanimous, Element: 1}
	x := &collective.Exchange{Name: "TryAll", Signature: tryAll}
	x.Start(v.comm.t, v.epoch, v.tag, v.comm.chooser.ByMessages().Allreduce(nil, &vote), ender(func(err error) {
		v.votes[1] = v.votes[0]
		v.err = v.comm.failure("TryAll", err)
		close(v.counted)
	}))
}

func unanimous(dst, left, right []byte) {
	for i := range dst {
		dst[i] = left[i] & right[i]
	}
}

// count waits until the votes are counted, whatever happens: see ledger.Vote. All ranks have begun
// to vote, so it doesn't depend on what their programs do, and a context that ends does not end it:
// the others may have counted yes.
func (v *vote) count() error {
	defer v.comm.waits("TryAll")()
	for {
		v.comm.t.Look()
		if v.comm.proc.await(v.counted, nil) {
			return v.err
		}
		v.comm.proc.exitIfDead()
	}
}

// verdict waits for the error because of which some rank has said no. It may not be noticed here
// yet.
func (v *vote) verdict(ctx context.Context) error {
	f, p := future.New[struct{}]()
	waiting.Of(f).Keep(&keeper{comm: v.comm, call: "TryAll", mode: ledger.Take})
	done := func(err error) { p.Complete(struct{}{}, v.comm.failure("TryAll", err)) }
	v.comm.receiveError(&onlyError{name: "TryAll", done: done}, v.epoch, v.tag)
	return f.Wait(ctx)
}
