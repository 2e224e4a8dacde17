package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/hook"
)

// Save saves the protected variables as a version. The version is not negative and not less
// than an earlier one. Save returns when the variables are copied in this rank's memory; then
// they may change. The future is done when the version counts: when the copies of all ranks,
// and their files, are in place. It need not be waited for, because the next Save and the next
// Restore do so. If it ends in an error, the version before is whole at every rank.
//
// If ctx ends while Save waits for the Save before it, the variables were not copied, and the
// Save ends with a *SaveError at all ranks. An error of the communicator is returned by the
// future's Wait or by the next operation.
func (s *Store) Save(ctx context.Context, version int) *future.Future[struct{}] {
	if s == nil {
		return future.Failed[struct{}](nilStore("Save"))
	}
	begin := time.Now()
	defer s.count(func(c *Stats) { c.Saves, c.Held = c.Saves+1, c.Held+time.Since(begin) })
	// All ranks begin both operations before they look at anything that may differ between them.
	// Their later calls then match, no matter whether the agreement is needed here.
	op, saved := hook.Of(s.comm).Begin("Save", exchanges)
	if op == nil {
		return saved
	}
	agreement, agreed := hook.Of(s.comm).Begin("Save", 1)
	if agreement == nil {
		op.End(nil)
		return agreed
	}
	before := s.pending
	// Only after Done may this goroutine read what the last Save may have written.
	if isDone(s.pending) && op.Epoch() == s.epoch && s.unsure == nil { // it can begin without waiting
		ctx = context.WithoutCancel(ctx)
	}
	s.pending = saved
	ready := make(chan *protection)
	go func() {
		// With two Saves at a time, the second would overwrite the data of the first, or those of
		// base.
		<-before.Done()
		err := s.save(ctx, version, op, agreement, agreed, ready)
		agreement.End(nil)
		op.End(err)
		close(ready)
	}()
	select {
	// The slot belongs to this goroutine until copied is closed. If a method for gob panics in
	// fill, bad is still errCopy, so the other ranks get a *SaveError and do not wait for this one.
	case p, ok := <-ready:
		if ok {
			defer close(p.copied)
			p.bad = p.fill()
		}
	case <-ctx.Done():
	}
	return saved
}

// errCopy is the error of a Save whose copy of the variables has panicked, in a method for gob.
var errCopy = errors.New("checkpoint: the variables were not copied")

// save is a Save on a goroutine of its own, without the copy of the variables: the program makes
// that while it is in Save, when it receives from ready. save returns the error with which the Save
// ends. The goroutine waits without a context, because an error of the communicator ends everything
// that it waits for.
func (s *Store) save(ctx context.Context, version int, op, agreement hook.Background, agreed *future.Future[struct{}], ready chan<- *protection) error {
	if op.Epoch() != s.epoch {
		agreed.Done() // from now on the rank joins rounds: its program waits in Save
		if err := s.agree(agreement); err != nil {
			return err
		}
	}
	// The last Save belongs to the same epoch, which is over: no exchange of this Save could
	// succeed.
	if s.unsure != nil {
		return s.unsure
	}
	s.saves++
	s.stamp++ // a version that is saved twice gets another stamp
	p := &protection{store: s, op: op, slot: s.free(), filled: true, copied: make(chan struct{}), bad: errCopy}
	p.file = s.opts.dir != "" && s.saves%s.opts.every == 0
	// A rank saves its own part only. What it has adopted of dead ranks was for the program to
	// Load.
	own := make([][]int, len(s.group.members))
	for i, r := range s.group.members {
		own[i] = []int{r}
	}
	p.slot.holding = s.holding(key{version, s.run, s.stamp, s.comm.Size()}, own)
	select {
	// The channel has no room, so the program gets p only if it is still in Save.
	case ready <- p:
		<-p.copied
	case <-ctx.Done(): // the program has continued, and changes the variables
		p.bad = context.Cause(ctx)
	}
	return p.run()
}

// isOwn says whether a slot has only this rank's part, as ranks are numbered now. The next version
// can then share its Once variables. After Shrink this is not so.
func (s *Store) isOwn(o *slot) bool {
	return o != nil && o.Key.Parts == s.comm.Size() && slices.Equal(o.parts(), []int{s.comm.Rank()})
}

// fill copies the variables to the slot.
func (p *protection) fill() (err error) {
	s, o := p.store, p.slot
	// An error here is one of this rank. The exchange of numbers carries it to the others, and no
	// rank saves the version.
	oldest := 0
	if s.base != nil {
		oldest = s.base.Key.Version
	}
	if s.err != nil {
		return s.err
	}
	if o.Key.Version < oldest {
		return fmt.Errorf("checkpoint: version %d, expected at least %d", o.Key.Version, oldest)
	}
	o.once = s.once
	p.newOnce = !s.isOwn(s.base) || s.base.once != o.once
	if p.newOnce {
		o.blobs[once] = new(blob)
		o.blobs[once].data, err = newBlob(nil, s.comm.Rank(), s.of(once))
	} else {
		o.blobs[once] = s.base.blobs[once]
	}
	if err == nil {
		o.blobs[changing].data, err = newBlob(o.blobs[changing].data, s.comm.Rank(), s.of(changing))
	}
	// From now on a Rejoin may offer this data, even if the Save is interrupted before its first
	// exchange.
	o.good = err == nil
	return err
}

// holding returns the holding of a new slot.
func (s *Store) holding(k key, held [][]int) holding {
	return holding{Key: k, Stamp: s.stamp, Members: s.group.members, K: s.group.k, M: s.group.m, Pos: s.position, Held: held}
}

// free returns a slot that is not base, and forgets all others. If base counts here, all ranks have
// all their shards of it, so no rank needs an older version any more. A slot that has lent its data
// is not written to: the borrower may be base.
func (s *Store) free() *slot {
	spare := new(slot)
	for _, o := range s.slots {
		if o != s.base && !o.lent {
			spare = o
		}
	}
	if spare.blobs[changing] == nil {
		spare.blobs[changing] = new(blob)
	}
	// Before the first byte is overwritten: no inventory may offer a slot with the data of two
	// versions.
	spare.Whole, spare.good = false, false
	s.slots = []*slot{spare}
	if s.base != nil {
		s.slots = append(s.slots, s.base)
	}
	return spare
}
