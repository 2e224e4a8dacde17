package mpicx

import (
	"context"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/internal/ledger"
	"github.com/mpicx/go-mpicx/internal/observe"
	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// A bareKeeper provides places for Waits, but reports no errors. All Waits share one place, so it
// serves one goroutine at a time.
type bareKeeper struct {
	*keeper
	place *waiting.Place
}

func (k bareKeeper) Park(ctx context.Context) (*waiting.Place, <-chan struct{}) {
	return k.place, ctx.Done()
}
func (k bareKeeper) Look()                 {}
func (k bareKeeper) Unpark(*waiting.Place) {}
func (k bareKeeper) MayHaveVerdict() bool  { return false }

var _ hook.Rank = (*inside)(nil)

func (i *inside) Bare() { i.keeper = &bareKeeper{i.keeper.(*keeper), i.proc.newPlace()} }

func (i *inside) Die() {
	i.proc.die()
	if i.ulfm != nil || i.proc.driver != nil { // a driver's ranks are processes
		i.t.Die()
	}
}

func (i *inside) Dead() bool        { return i.proc.dead.Load() }
func (i *inside) Mortal() bool      { return i.ulfm != nil || i.proc.driver != nil }
func (i *inside) Machine() int      { return i.t.Machine(i.rank) }
func (i *inside) Progress() string  { return (*comm)(i).root().progress() }
func (i *inside) Blocked() []string { return (*comm)(i).root().blocked() }
func (i *inside) Where() string     { return (*comm)(i).root().where() }
func (i *inside) Calls() []string   { return (*comm)(i).root().differing(nil) }

func (i *inside) Happened(kind observe.Kind, text string) {
	i.proc.observer.Happened(observe.Event{Kind: kind, Comm: i.name, Text: text})
}

func (i *inside) Abort(err error) {
	if i.ulfm != nil && i.proc.dead.Load() {
		return // it takes no further part, and no rank waits for it
	}
	// A goroutine rank that a test has killed takes part once more, so its peers get the error.
	i.proc.dead.Store(false)
	i.proc.feed(i.proc.ledger.Revive)
	i.proc.aborted.Store(&err)
	for _, d := range (*comm)(i).root().first() {
		d.raise(newFailure(err, 0), &ledger.Raised{Cause: err, Corrupt: true})
	}
	i.proc.addWaiters(1) // it joins every round now, since its program may never wait again
}

// first returns the topmost communicators that the program knows: c or, if c is the pool, the
// communicators derived from it. c is the rank's first communicator.
func (c *comm) first() []*comm {
	if c.lineage.pool == nil {
		return []*comm{c}
	}
	return c.derived()
}

// background is a hook.Background. Its exchanges use the epoch and the tags that it reserves when
// it begins, no matter when they start. The transport ends exchanges that start after an error.
type background struct {
	of        *waiting.Cell // of its future
	end       func(struct{}, error)
	comm      *comm
	name      string
	epoch     transport.Epoch
	next      int // sequence number of the next exchange
	last      int // the last that is reserved; exchanges may share it, since messages stay in order
	agreement errchan.Agreement
}

var inBackground = call{Kind: signature.Background}.Word()

var _ hook.Background = (*background)(nil)

func (i *inside) Begin(name string, exchanges int) (hook.Background, *future.Future[struct{}]) {
	b, f, end := beginBackground[struct{}](i, name, exchanges)
	if b == nil {
		return nil, f
	}
	b.end = end
	return b, f
}

func (i *inside) BeginCount(name string, exchanges int) (hook.Background, *future.Future[int], func(int, error)) {
	b, f, end := beginBackground[int](i, name, exchanges)
	if b == nil {
		return nil, f, nil
	}
	return b, f, end
}

func beginBackground[T any](i *inside, name string, exchanges int) (*background, *future.Future[T], func(T, error)) {
	c := (*comm)(i)
	c.notInReduction("begins", name)
	epoch, err := c.begin(name)
	if err != nil {
		return nil, failed[T](c, err), nil
	}
	f, end := begins[T](c, name, ledger.Take)
	b := &background{of: waiting.Of(f), comm: c, name: name, epoch: epoch}
	// The numbers of all exchanges are taken now, while the calls of all ranks have the same order.
	for k := range exchanges {
		if b.last = c.t.Call(epoch, inBackground); k == 0 {
			b.next = b.last
		}
	}
	return b, f, end
}

func (b *background) cell() *waiting.Cell    { return b.of }
func (b *background) Epoch() transport.Epoch { return b.epoch }

func (b *background) Late() error {
	if b.comm.t.Epoch() == b.epoch && !b.comm.isBroken() {
		return nil
	}
	ended := make(chan error, 1)
	done := func(err error) { ended <- b.comm.failure(b.name, err) }
	b.comm.receiveError(&onlyError{name: b.name, done: done}, b.epoch, transport.NoTag) // ends at once
	return <-ended
}

func (b *background) Exchange(a collective.Algorithm, then func(error)) {
	tag := transport.CollectiveTag(b.next)
	b.next = min(b.next+1, b.last)
	x := &collective.Exchange{Name: b.name, Signature: inBackground}
	x.Start(b.comm.t, b.epoch, tag, a, &backgroundExchange{b, then})
}

func (b *background) Reserve() {
	b.agreement = b.comm.agreements().Reserve(b.epoch, errchan.Background)
}

func (b *background) Agree(then func(error)) {
	p := errchan.Proposal{Call: errchan.Background, Flag: -1}
	b.comm.agreements().Propose(b.agreement, p, func(d *errchan.Decision, err error) {
		then(b.comm.outcome(b.name, errchan.Background, d, err))
	})
}

func (b *background) End(err error) { b.end(struct{}{}, err) }

// backgroundExchange is one exchange of a background operation. To the program it appears as that
// operation.
type backgroundExchange struct {
	*background
	onEnd func(error)
}

func (x *backgroundExchange) Ended(err error) { x.onEnd(x.comm.failure(x.name, err)) }
