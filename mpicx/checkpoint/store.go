package checkpoint

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/klauspost/reedsolomon"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/internal/element"
	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/mpicx"
)

// A Store keeps versions of a rank's variables, with the stores of the other ranks of its
// communicator. Its methods are collective, and are called from one goroutine at a time,
// but for Stats.
type Store struct {
	// A duplicate of the program's communicator: errors there end what the store does, too (D1).
	comm *mpicx.Comm // its own
	opts *options

	// These fields are determined in Open and do not change.

	// All ranks compute their groups from the same list of machines, so the groups fit together.
	group    group
	position int
	rows     []reedsolomon.Encoder // by parity
	// A random number of rank 0. It is in the names of files, so two jobs never write the same
	// file.
	run    uint64 // of the job
	shared bool   // all ranks see the same directory

	// The goroutine that calls the methods owns these fields.

	vars []*variable
	err  error // of Protect
	once int   // number of Once variables that were protected
	// pending is the last Save; if there was none, it is done.
	// Until it is done, its goroutine owns the fields below.
	pending *future.Future[struct{}]

	slots []*slot
	base  *slot      // the newest version that all ranks have, and know that all have; nil: none
	lost  *LostError // nil: nothing was lost when the store was opened
	// unsure is the error that has ended the last Save here, perhaps not at other ranks. Until the
	// next agreement, base is only what this rank knows.
	unsure error
	// In the same epoch no agreement is needed: since the last one no error has ended a Save at
	// some ranks only. An error starts the next epoch at all ranks alike (T3), and then they agree
	// again.
	epoch transport.Epoch // of the last agreement
	stamp uint64          // of the last agreement or Save
	// The same at all ranks, as the stamp is: by it each rank decides whether a Save writes files
	// (Every).
	saves int // number of Saves that were begun
	loads int // number of Loads that were begun
	// It only tells data that are lost from data that were never saved.
	saved int // the newest version that counted, as far as this rank knows; -1: none
	// At most Keep, the newest first. Files that are older than the last of them may be removed.
	files []key    // the newest versions that have all files
	found []stored // files that existed when the store was opened

	mu    sync.Mutex // protects stats
	stats Stats
}

// Protect registers the variable that v points to under a name: from now on Save saves it and
// Restore sets it. It is a number, a slice of numbers, or anything that encoding/gob takes. A
// variable replaces an earlier one of the same name. All ranks protect the same names, and do
// so before the Restore that is to set them. If v is of no such type, the next Save or Restore
// returns an error.
func (s *Store) Protect(name string, v any, opts ...ProtectOption) {
	if s == nil {
		panic(nilStore("Protect").Error())
	}
	x, err := newVariable(name, v)
	if err != nil {
		s.err = cmp.Or(s.err, err)
		return
	}
	for _, opt := range opts {
		opt(x)
	}
	if x.once && !slices.ContainsFunc(s.vars, func(old *variable) bool { return old.name == name && old.once }) {
		s.once++
	}
	s.vars = append(slices.DeleteFunc(s.vars, func(x *variable) bool { return x.name == name }), x)
}

// A ProtectOption says how a variable is saved.
type ProtectOption func(*variable)

// Once says that the variable never changes. It is saved, and sent to other ranks, in the first
// Save after it was protected only.
func Once(x *variable) { x.once = true }

// of returns the Once variables, or the others.
func (s *Store) of(which int) []*variable {
	return slices.DeleteFunc(slices.Clone(s.vars), func(x *variable) bool { return x.once != (which == once) })
}

// isDone says whether f is done, however it has ended.
func isDone(f *future.Future[struct{}]) bool {
	select {
	case <-f.Done():
		return true
	default:
		return false
	}
}

// await waits until f is done, however it ends. It does not take errors that the program is to be
// told of: the next operation reports them.
func await(ctx context.Context, f *future.Future[struct{}]) error {
	select {
	case <-f.Done():
	case <-ctx.Done():
		if !isDone(f) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// background begins a Background of one exchange, which run carries out when what the store has
// begun before has ended. It returns the error of run as a Wait reports it. The operation takes its
// place among the store's collective operations first, so this rank's next call matches the next
// calls of the others. If ctx ends, the exchange is carried out all the same: the other ranks need
// this one, and all ranks know the same when it has ended. The store's next call waits for that.
func (s *Store) background(ctx context.Context, name string, run func(hook.Background) error) error {
	op, f := hook.Of(s.comm).Begin(name, 1)
	if op == nil {
		return f.Wait(ctx)
	}
	before := s.pending
	s.pending = f
	var ended error
	go func() {
		<-before.Done()
		ended = run(op)
		op.End(ended)
	}()
	err := await(ctx, f)
	if err == nil {
		err = ended
	}
	if err == nil {
		return nil
	}
	return cmp.Or(f.Wait(ctx), err)
}

// gather carries out an exchange by which each rank gets the contributions of all. All ranks that
// get the list get the same one, in the order of ranks. The store decides everything in this way:
// each rank computes the decision from the list, and no rank decides for others. If a rank dies,
// some ranks may get the list and others an error.
func gather[T any](op hook.Background, v T) ([]T, error) {
	var a collective.AllgatherAny
	var err error
	if a.Send, err = element.Encode(v); err != nil {
		panic(err) // the types of contributions are ours
	}
	if err := exchange(op, &a); err != nil {
		return nil, err
	}
	all, err := element.DecodeAll[T](a.Parts)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	return all, nil
}

// meet gathers what contribution returns when what the store has begun before has ended. It throws
// its error, perhaps the end of ctx: then the exchange is carried out all the same.
func meet[T any](ctx context.Context, s *Store, name string, contribution func() T) (all []T) {
	mpicx.Throw(s.background(ctx, name, func(op hook.Background) (err error) {
		all, err = gather(op, contribution())
		return err
	}))
	return all
}

// learn takes over what other ranks know. The next stamp is then the same at all. The maximum is
// right for each number. To skip a stamp is harmless. To use one twice would give two Saves the
// same key.
func (s *Store) learn(all []inventory) {
	for _, o := range all {
		s.stamp, s.saves, s.saved = max(s.stamp, o.Stamp), max(s.saves, o.Saves), max(s.saved, o.Saved)
		for _, k := range o.Complete {
			s.noteFiles(k)
		}
	}
	s.stamp++
}

// agree agrees with all ranks which versions they have. base is then the newest version that counts
// at all ranks. A version may count although this rank's Save has ended in an error: another rank
// may have been told that it counts. So a version counts if all ranks have all their shards of it.
// If one rank has not, no rank was told: the exchange after which a version counts begins at each
// rank when its shards are there.
func (s *Store) agree(op hook.Background) error {
	all, err := gather(op, inventory{
		Slots: s.describe(false), Stamp: s.stamp, Saves: s.saves, Saved: s.saved, Complete: s.files,
	})
	if err != nil {
		return err
	}
	s.epoch, s.unsure, s.base = op.Epoch(), nil, s.common(all)
	s.learn(all)
	return nil
}

// common returns the newest version of which all ranks have all shards, or nil.
func (s *Store) common(all []inventory) (base *slot) {
	for _, o := range s.slots {
		// The layout has to be the same, too: shards of different groups do not fit together.
		everywhere := !slices.ContainsFunc(all, func(other inventory) bool { return !slices.ContainsFunc(other.Slots, o.isLike) })
		if everywhere && (base == nil || cmp.Or(cmp.Compare(o.Key.Version, base.Key.Version), cmp.Compare(o.Stamp, base.Stamp)) > 0) {
			base = o
		}
	}
	return base
}

// describe returns the holdings of the slots that are whole. With parts, it returns those of all
// slots that have the data of their versions. A slot that is good but not whole is of a Save that
// was interrupted. Open asks for it, because its data may be part of a version of which all parts
// are still there. An agreement does not, because such a version might not survive the next death.
func (s *Store) describe(parts bool) (all []*holding) {
	for _, o := range s.slots {
		if o.Whole || parts && o.good {
			h := o.holding
			for i, b := range o.blobs {
				h.Chunk[i] = b.chunk
			}
			all = append(all, &h)
		}
	}
	return all
}

// Close ends the use of the store. It is collective, like a communicator's Close. The files remain.
func (s *Store) Close(ctx context.Context) error {
	if v := recover(); v != nil {
		defer s.Release() // it sees the panic
		panic(v)
	}
	if s == nil {
		return nilStore("Close")
	}
	if err := await(ctx, s.pending); err != nil {
		return err
	}
	return s.comm.Close(ctx)
}

// Release gives up this rank's store and never waits, like a communicator's Release: it is right
// in a defer. A Save that is under way ends first. The files remain.
func (s *Store) Release() {
	v := recover()
	switch {
	case s == nil:
	case v != nil:
		defer s.comm.Release() // it sees the panic
	default:
		go func(comm *mpicx.Comm, saved <-chan struct{}) {
			<-saved
			comm.Release()
		}(s.comm, s.pending.Done())
	}
	if v != nil {
		panic(v)
	}
}
