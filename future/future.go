package future

import (
	"context"
	"sync"
	"sync/atomic"
)

// A Future is the result, some day, of an operation that was started. It has
// one result, which never changes once the operation is done (design rule F3).
// All its methods may be called from many goroutines at once.
//
// The zero Future never ends. Get one from [New], [Go], [Ready], [Failed], or
// from an operation.
type Future[T any] struct {
	core
	value T
}

// core is what does not depend on the type of the result. A goroutine that
// waits puts its place into slot, and the completion swaps settled in: one
// atomic operation each, and no lock. Who finds the slot taken waits for the
// broadcast, and so do those who ask for Done.
type core struct {
	slot      atomic.Pointer[Place]
	broadcast atomic.Pointer[broadcast]
	trouble   atomic.Pointer[Trouble]
	keeper    Keeper
	err       error
}

// Trouble is an error that does not end the operation: while a future has one,
// Waits return it, and the operation goes on.
type Trouble struct{ Err error }

// settled, in a future's slot, says that err and value are final.
var settled = new(Place)

// A Place is where one goroutine waits for one future.
type Place struct {
	Spare bool // for the Keeper's use
	// Await, if not nil, is how it waits: until the place is Woken, which it says, or
	// ended is closed.
	Await func(p *Place, ended <-chan struct{}) (woken bool)

	wake   chan struct{}
	slot   *atomic.Pointer[Place] // that it waits in, with Await
	asleep atomic.Bool            // with Await: wake is received from
}

// NewPlace returns a Place. A Keeper keeps used ones for the next Wait: they
// belong to the synctest bubble they were made in, so no global pool may.
func NewPlace() *Place { return &Place{wake: make(chan struct{}, 1)} }

// Woken is for Await: it says whether the wait is over.
func (p *Place) Woken() bool { return p.slot.Load() != p }

// Sleep is for Await: it returns a channel from which it can receive once the place is
// Woken, and perhaps before. Rise ends that.
func (p *Place) Sleep() <-chan struct{} {
	p.asleep.Store(true)
	if p.Woken() {
		p.rouse()
	}
	return p.wake
}

// Rise ends what Sleep began.
func (p *Place) Rise() { p.asleep.Store(false) }

// rouse wakes the goroutine, whose place is in its slot no more.
func (p *Place) rouse() {
	if p.Await == nil {
		p.wake <- struct{}{}
	} else if p.asleep.Load() {
		select {
		case p.wake <- struct{}{}:
		default: // it has been already
		}
	}
}

// await blocks until the place is woken, or ended is closed; it says which.
func (p *Place) await(ended <-chan struct{}) (woken bool) {
	switch {
	case p.Await != nil:
		return p.Await(p, ended)
	case ended == nil:
		<-p.wake
		return true
	}
	select {
	case <-p.wake:
		return true
	case <-ended:
		return false
	}
}

// A broadcast is what Done returns and how second waiters wait: rare, so a
// future has none until it is asked for.
type broadcast struct {
	done    chan struct{}
	watched bool // by the keeper
	once    sync.Once
	waiters atomic.Int32 // goroutines in a Wait or WaitAny, but for that in the slot

	mu      sync.Mutex
	stirred chan struct{} // closed at the next trouble; nil: nobody waits for it
}

// stirred returns a channel that is closed when the future gets into trouble. It
// has a broadcast.
func (c *core) stirred() <-chan struct{} {
	b := c.broadcast.Load()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stirred == nil {
		b.stirred = make(chan struct{})
	}
	return b.stirred
}

// disturb sets or clears the trouble, and has those that wait look at it.
func (c *core) disturb(t *Trouble) {
	c.trouble.Store(t)
	if t == nil {
		return
	}
	if place := c.slot.Load(); place != nil && place != settled && c.slot.CompareAndSwap(place, nil) {
		place.rouse()
	}
	if b := c.broadcast.Load(); b != nil {
		b.mu.Lock()
		if b.stirred != nil {
			close(b.stirred)
			b.stirred = nil
		}
		b.mu.Unlock()
	}
}

// A Keeper stands behind the futures of one party, and can report an error of
// that party in any Wait. Its methods are called by many goroutines at once.
type Keeper interface {
	parker
	// Yield is called by a Wait that finds its future pending, before it parks: the
	// keeper may let those run who will end it.
	Yield()
	// Troubled says whether Verdict has to be asked. Every Wait asks it, so it
	// has to be quick.
	Troubled() bool
	// Verdict is asked by a Wait whose operation is done: it returns the error
	// to report in place of the result, or nil for the result. It may block
	// until ctx ends, and then returns what Ended would.
	Verdict(ctx context.Context) error
	// TryVerdict is Verdict for Test: where Verdict would block, ok is false.
	TryVerdict() (ok bool, err error)
	// Watch is told, once a future, that somebody looks at its Done channel
	// instead of waiting; Unwatch, that this future is done.
	Watch()
	Unwatch()
}

type parker interface {
	// Park is called by a goroutine about to wait with ctx; it lends a place
	// to wait in and says which channel ends the wait early (nil: none).
	Park(ctx context.Context) (*Place, <-chan struct{})
	// Look is called when a future is found pending, by a Wait before it blocks, by
	// Test and by Done: the keeper ends those that nothing else can end any more. The
	// future is Awaited by then if a goroutine is about to block for it.
	Look()
	// Unpark ends what Park began and gives the place back.
	Unpark(*Place)
	// Ended is asked, when Park's channel has closed, what Wait shall return; nil
	// if it shall go on waiting.
	Ended(ctx context.Context) error
}

// A Describer is a Keeper that can say what its futures are the results of. A
// Wait that ends before its operation, or reports the party's error in place of
// the result, has its error described once, on the way out: until then it costs
// nothing.
type Describer interface {
	// Describe returns err, or an error that wraps it and says what was waited
	// for: one of the futures with these identities.
	Describe(ctx context.Context, err error, waited ...ID) error
}

// An ID tells futures apart, whatever their types.
type ID struct{ core *core }

// ID is the future's own, for as long as it lives.
func (f *Future[T]) ID() ID { return ID{&f.core} }

func (c *core) id() ID { return ID{c} }

// describe returns err as the keeper, if it can, describes it.
func describe(ctx context.Context, err error, keeper parker, waited ...ID) error {
	if d, ok := keeper.(Describer); ok && err != nil {
		return d.Describe(ctx, err, waited...)
	}
	return err
}

// mustHave panics if ctx is nil, whether or not the call would have looked at it.
func mustHave(ctx context.Context, call string) {
	if ctx == nil {
		panic("future: " + call + ": nil context")
	}
}

// Wait blocks until the operation is done and returns nil, or why it did not
// do what was asked. If ctx ends first it returns ctx's cause; the operation
// goes on and may be waited for again. A nil ctx panics.
func (f *Future[T]) Wait(ctx context.Context) error { return f.wait(ctx) }

// Get is Wait, then the value. The value is T's zero value if there is an error.
func (f *Future[T]) Get(ctx context.Context) (T, error) {
	if err := f.wait(ctx); err != nil {
		var none T
		return none, err
	}
	return f.value, nil
}

// MustWait is Wait that throws the error: it panics with [Thrown].
func (f *Future[T]) MustWait(ctx context.Context) {
	if err := f.wait(ctx); err != nil {
		panic(Thrown{err})
	}
}

// MustGet is Get that throws the error: it panics with [Thrown].
func (f *Future[T]) MustGet(ctx context.Context) T {
	v, err := f.Get(ctx)
	if err != nil {
		panic(Thrown{err})
	}
	return v
}

// Test says whether the operation is done, and what a Wait would return at once.
// It never blocks.
func (f *Future[T]) Test() (done bool, err error) {
	if done = f.isDone(); !done {
		f.look()
		done = f.isDone()
	}
	if f.keeper != nil && f.keeper.Troubled() {
		if ok, err := f.keeper.TryVerdict(); !ok || err != nil {
			return ok, err
		}
	}
	if !done { // before the verdict was asked for: what is done by now may be because of one
		return false, f.troubled()
	}
	return true, f.outcome()
}

// Done returns a channel that is closed once the operation is done, for select.
// Ask Wait or Test how it ended.
func (f *Future[T]) Done() <-chan struct{} { return f.doneChan() }

func (c *core) isDone() bool { return c.slot.Load() == settled }

// awaited says whether a goroutine is in a Wait or WaitAny for the future.
func (c *core) awaited() bool {
	if place := c.slot.Load(); place != nil {
		return place != settled
	}
	b := c.broadcast.Load()
	return b != nil && b.waiters.Load() > 0
}

// await says that a goroutine more, or fewer, waits for the broadcast, which there is.
func (c *core) await(n int32) { c.broadcast.Load().waiters.Add(n) }

func (c *core) look() {
	if c.keeper != nil {
		c.keeper.Look()
	}
}

func (c *core) wait(ctx context.Context) error {
	mustHave(ctx, "Wait")
	if c.keeper != nil && !c.isDone() {
		c.keeper.Yield()
	}
	for !c.isDone() {
		if err := c.troubled(); err != nil {
			return c.instead(ctx, err)
		}
		if err := c.park(ctx); err != nil {
			return err
		}
	}
	if c.keeper != nil && c.keeper.Troubled() {
		if err := c.keeper.Verdict(ctx); err != nil {
			return describe(ctx, err, c.keeper, c.id())
		}
	}
	return c.outcome()
}

// troubled returns why the operation may not go on, though it is not done.
func (c *core) troubled() error {
	if t := c.trouble.Load(); t != nil {
		return t.Err
	}
	return nil
}

// instead returns the error of c's party if it has one to report, else err.
func (c *core) instead(ctx context.Context, err error) error {
	if c.keeper != nil && c.keeper.Troubled() {
		if v := c.keeper.Verdict(ctx); v != nil {
			return describe(ctx, v, c.keeper, c.id())
		}
	}
	return err
}

// outcome is how the operation, which is done, ended. A panic of the function
// behind it goes on here.
func (c *core) outcome() error {
	if p, ok := c.err.(*Panicked); ok {
		panic(p)
	}
	return c.err
}

// park blocks until the operation is done, or returns why it did not.
func (c *core) park(ctx context.Context) error {
	var keeper parker = nobody{}
	if c.keeper != nil {
		keeper = c.keeper
	}
	place, ended := keeper.Park(ctx)
	place.slot = &c.slot
	if !c.slot.CompareAndSwap(nil, place) {
		keeper.Unpark(place)
		return c.parkWithOthers(ctx, keeper)
	}
	if c.trouble.Load() != nil && c.slot.CompareAndSwap(place, nil) { // it came in between
		keeper.Unpark(place)
		return nil
	}
	keeper.Look()
	if !place.await(ended) {
		if c.slot.CompareAndSwap(place, nil) {
			keeper.Unpark(place)
			return describe(ctx, keeper.Ended(ctx), keeper, c.id())
		}
		if place.Await == nil {
			<-place.wake // the completion took the place and is about to wake it
		}
	}
	keeper.Unpark(place)
	return nil
}

// parkWithOthers waits where another goroutine has the slot, or the operation
// has just ended.
func (c *core) parkWithOthers(ctx context.Context, keeper parker) error {
	if c.isDone() {
		return nil
	}
	place, ended := keeper.Park(ctx)
	defer keeper.Unpark(place)
	done := c.doneChan()
	stirred := c.stirred()
	if c.trouble.Load() != nil {
		return nil
	}
	c.await(1)
	defer c.await(-1)
	keeper.Look()
	select {
	case <-done:
		return nil
	case <-stirred:
		return nil
	case <-ended:
		return describe(ctx, keeper.Ended(ctx), keeper, c.id())
	}
}

func (c *core) doneChan() <-chan struct{} {
	if b := c.broadcast.Load(); b != nil {
		return b.done
	}
	// Who asks for the channel of a future that is done waits for nothing.
	b := &broadcast{done: make(chan struct{}), watched: c.keeper != nil && !c.isDone()}
	if b.watched {
		c.keeper.Watch()
	}
	if !c.broadcast.CompareAndSwap(nil, b) {
		if b.watched {
			c.keeper.Unwatch()
		}
		return c.broadcast.Load().done
	}
	if b.watched {
		c.look()
	}
	if c.isDone() { // perhaps before it could see b
		c.close(b)
	}
	return b.done
}

func (c *core) close(b *broadcast) {
	b.once.Do(func() {
		close(b.done)
		if b.watched {
			c.keeper.Unwatch()
		}
	})
}

const completedTwice = "future: completed twice"

// settle publishes the result. It panics if that was done before.
func (c *core) settle() {
	place := c.slot.Swap(settled)
	if place == settled {
		panic(completedTwice)
	}
	if place != nil {
		place.rouse()
	}
	if b := c.broadcast.Load(); b != nil {
		c.close(b)
	}
}

// nobody keeps the futures that have no Keeper.
type nobody struct{}

func (nobody) Park(ctx context.Context) (*Place, <-chan struct{}) { return NewPlace(), ctx.Done() }
func (nobody) Look()                                              {}
func (nobody) Unpark(*Place)                                      {}
func (nobody) Ended(ctx context.Context) error                    { return context.Cause(ctx) }
