package waiting

import (
	"context"
	"sync"
	"sync/atomic"
)

// A Holder is a future of any type: it embeds [Hidden].
type Holder interface{ cell() *Cell }

// Of returns the Cell of a future.
func Of(future Holder) *Cell { return future.cell() }

// Hidden is the Cell of a type that embeds it. Nothing in it has an exported name. If the type
// embeds it by an unexported alias, users of the type do not see it.
type Hidden struct{ hidden Cell }

func (h *Hidden) cell() *Cell { return &h.hidden }

// A Cell is a future without its result. The zero Cell is pending, and kept by [Nobody].
//
// A goroutine that waits puts its Place into slot, and the completion swaps in the mark completed.
// Each takes one atomic operation and no lock. A goroutine that finds the slot taken, or that calls
// Done, waits for the broadcast.
type Cell struct {
	slot        atomic.Pointer[Place]
	broadcast   atomic.Pointer[broadcast]
	disturbance atomic.Pointer[error] // the error of Waits while the operation is pending; nil: none
	keeper      Keeper                // nil: Nobody; set before the future is shared
}

// completed, in a slot, says that the result is final.
var completed = new(Place)

// A broadcast has the channel of Done, for which all waiters wait who do not have the slot. It is
// rarely needed, so it is made on demand.
type broadcast struct {
	done    chan struct{}
	watched bool // the keeper was told by Watch
	once    sync.Once
	waiters atomic.Int32 // goroutines in a Wait or WaitAny, except the one in the slot

	mu        sync.Mutex
	disturbed chan struct{} // closed at the next disturbance; nil: nobody waits for it
}

// Keep sets the Keeper of the future. Call it before the future is shared.
func (c *Cell) Keep(k Keeper) { c.keeper = k }

// Kept returns the Keeper that Keep has set, or nil.
func (c *Cell) Kept() Keeper { return c.keeper }

func (c *Cell) by() Keeper {
	if c.keeper == nil {
		return Nobody{}
	}
	return c.keeper
}

// IsDone says whether the operation is done. If it is, the result can be read.
func (c *Cell) IsDone() bool { return c.slot.Load() == completed }

// Complete publishes the result. It returns false if that was done before.
func (c *Cell) Complete() (first bool) {
	place := c.slot.Swap(completed)
	if place == completed {
		return false
	}
	if place != nil {
		place.rouse()
	}
	if b := c.broadcast.Load(); b != nil {
		c.close(b)
	}
	return true
}

// Disturb makes Waits return err, from now on until the operation is done or Disturb(nil) is
// called. The future stays pending. If it is done already, Disturb does nothing.
func (c *Cell) Disturb(err error) {
	if err == nil {
		c.disturbance.Store(nil)
		return
	}
	c.disturbance.Store(&err)
	if place := c.slot.Load(); place != nil && place != completed && c.slot.CompareAndSwap(place, nil) {
		place.rouse()
	}
	if b := c.broadcast.Load(); b != nil {
		b.mu.Lock()
		if b.disturbed != nil {
			close(b.disturbed)
			b.disturbed = nil
		}
		b.mu.Unlock()
	}
}

// Disturbed returns a channel that is closed at the next disturbance of the future.
func (c *Cell) Disturbed() <-chan struct{} {
	c.Done()
	b := c.broadcast.Load()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.disturbed == nil {
		b.disturbed = make(chan struct{})
	}
	return b.disturbed
}

func (c *Cell) disturbedBy() error {
	if err := c.disturbance.Load(); err != nil {
		return *err
	}
	return nil
}

// Awaited says whether a goroutine is in a Wait or WaitAny for the future. It does not count a
// goroutine that receives from Done.
func (c *Cell) Awaited() bool {
	if place := c.slot.Load(); place != nil {
		return place != completed
	}
	b := c.broadcast.Load()
	return b != nil && b.waiters.Load() > 0
}

// Await adds n to the number of goroutines that wait for Done to be closed.
func (c *Cell) Await(n int32) {
	c.Done()
	c.broadcast.Load().waiters.Add(n)
}

// Tell tells the Keeper that the program gets the error that the operation ended with.
func (c *Cell) Tell(err error) { c.by().Told(c, err) }

// Fail tells the Keeper that the operation is about to end with an error.
func (c *Cell) Fail(err error) { c.by().Failing(c, err) }

// Look tells the Keeper that the future was found pending.
func (c *Cell) Look() { c.by().Look() }

// Wait blocks until the operation is done. It returns nil if the result can be read, or the error
// to report instead. The operation's own error is in end when it is done.
func (c *Cell) Wait(ctx context.Context, end *error) error {
	if !c.IsDone() {
		c.by().Yield(c)
	}
	for !c.IsDone() {
		if err := c.disturbedBy(); err != nil {
			if c.mayHaveVerdict() {
				if v := c.verdict(ctx, end); v != nil {
					return v
				}
			}
			return err
		}
		if err := c.park(ctx); err != nil && !(c.IsDone() && c.isOver(*end)) { // which says more than that ctx has ended
			return err
		}
	}
	if c.mayHaveVerdict() {
		return c.inPlace(c.verdict(ctx, end))
	}
	return nil
}

func (c *Cell) isOver(end error) bool { return end != nil && c.by().IsOver(end) }

// inPlace returns v, the error that a Wait reports instead of the result, or nil.
func (c *Cell) inPlace(v error) error {
	if v != nil {
		c.by().Told(c, nil)
	}
	return v
}

// mayHaveVerdict is called in every Wait, so it calls nothing if there is no Keeper.
func (c *Cell) mayHaveVerdict() bool { return c.keeper != nil && c.keeper.MayHaveVerdict() }

// verdict returns the error that the Keeper reports instead of the result.
func (c *Cell) verdict(ctx context.Context, end *error) error {
	return c.described(ctx, c.by().Verdict(ctx, c.ended(end)))
}

// ended returns a function that returns *end, or nil while the operation is pending.
func (c *Cell) ended(end *error) func() error {
	return func() error {
		if c.IsDone() {
			return *end
		}
		return nil
	}
}

func (c *Cell) described(ctx context.Context, err error) error {
	if err != nil {
		err = c.by().Describe(ctx, err, c)
	}
	return err
}

// Test is a Wait that does not block. done says that Wait would not have blocked.
func (c *Cell) Test(end *error) (done bool, err error) {
	if done = c.IsDone(); !done {
		c.Look()
		done = c.IsDone()
	}
	if c.mayHaveVerdict() {
		if ok, err := c.keeper.TryVerdict(c.ended(end)); !ok || err != nil {
			return ok, c.inPlace(err)
		}
	}
	if !done { // as found before TryVerdict: if the operation is done by now, a verdict may have ended it
		return false, c.disturbedBy()
	}
	return true, nil
}

// park blocks until the operation is done or disturbed. It returns an error if the wait has ended
// before.
func (c *Cell) park(ctx context.Context) error {
	keeper := c.by()
	place, ended := keeper.Park(ctx)
	place.slot = &c.slot
	if !c.slot.CompareAndSwap(nil, place) {
		keeper.Unpark(place)
		return c.parkWithOthers(ctx)
	}
	if c.disturbance.Load() != nil && c.slot.CompareAndSwap(place, nil) { // it came in between
		keeper.Unpark(place)
		return nil
	}
	keeper.Look()
	var over func()
	if place.Observe != nil {
		over = place.Observe(c)
	}
	woken := place.await(ended)
	if over != nil {
		over()
	}
	if !woken || !place.Woken() {
		if c.slot.CompareAndSwap(place, nil) {
			keeper.Unpark(place)
			if woken { // it was nudged
				return nil
			}
			return c.described(ctx, keeper.Ended(ctx))
		}
		if place.Drive == nil && !woken {
			<-place.wake // the completion has taken the place and is about to wake it
		}
	}
	keeper.Unpark(place)
	return nil
}

// parkWithOthers is park if another goroutine has the slot, or the operation has just ended.
func (c *Cell) parkWithOthers(ctx context.Context) error {
	if c.IsDone() {
		return nil
	}
	keeper := c.by()
	place, ended := keeper.Park(ctx)
	defer keeper.Unpark(place)
	done, disturbed := c.Done(), c.Disturbed()
	if c.disturbance.Load() != nil {
		return nil
	}
	c.Await(1)
	defer c.Await(-1)
	keeper.Look()
	if place.Observe != nil {
		defer place.Observe(c)()
	}
	select {
	case <-done:
	case <-disturbed:
	case <-place.wake: // it was nudged
	case <-ended:
		return c.described(ctx, keeper.Ended(ctx))
	}
	return nil
}

// Done returns a channel that is closed once the operation is done.
func (c *Cell) Done() <-chan struct{} {
	if b := c.broadcast.Load(); b != nil {
		return b.done
	}
	// The channel of a future that is done is not watched: nobody waits for it.
	b := &broadcast{done: make(chan struct{}), watched: !c.IsDone()}
	if b.watched {
		c.by().Watch()
	}
	if !c.broadcast.CompareAndSwap(nil, b) {
		if b.watched {
			c.by().Unwatch()
		}
		return c.broadcast.Load().done
	}
	if b.watched {
		c.Look()
	}
	if c.IsDone() { // perhaps Complete did not see b
		c.close(b)
	}
	return b.done
}

func (c *Cell) close(b *broadcast) {
	b.once.Do(func() {
		close(b.done)
		if b.watched {
			c.by().Unwatch()
		}
	})
}
