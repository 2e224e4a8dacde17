package checkpoint

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/mpicx"
)

// Open opens a store on a communicator. It is collective, with the same options at all ranks. It
// finds the newest version that the ranks together have, in files and in the memory of ranks that
// call [Store.Rejoin] at the same time. It chooses partners anew, and returns when they have their
// copies. A rank that has no store opens one; a rank that has it already calls Rejoin, because Open
// would leave what is in its memory.
func Open(ctx context.Context, comm *mpicx.Comm, opts ...Option) (*Store, error) {
	o, err := read(opts)
	if err != nil {
		return nil, err
	}
	return open(ctx, comm, &Store{opts: o, saved: -1})
}

// Rejoin moves a store to another communicator, after Shrink or Replace. It is collective:
// ranks that have the store call Rejoin, and ranks that are new call [Open]. Rejoin changes no
// variable: that is [Store.Restore].
//
// The store that Rejoin returns has the same protected variables and takes the place of s, which is
// not used any more. If Rejoin returns an error, s is unchanged. As with any collective operation,
// another rank may get an error where this one gets none. Therefore call Rejoin and Open inside
// TryAll, and if that fails, call them again at all ranks.
func (s *Store) Rejoin(ctx context.Context, comm *mpicx.Comm) (*Store, error) {
	if s == nil {
		return nil, nilStore("Rejoin")
	}
	if err := await(ctx, s.pending); err != nil {
		return nil, err
	}
	return open(ctx, comm, s)
}

// An introduction is a rank's contribution to the first meeting in Open.
type introduction struct {
	Machine int // the number of this rank's machine
	Nonce   uint64
	Run     uint64 // of a rank that rejoins; else 0
	Options [4]int
	Err     string
}

// open opens a store in the place of another one, which may be empty. The new store takes over what
// it has to know, and leaves from as it is. If an error ends this call, the data in memory of from
// are still there for the next call.
func open(ctx context.Context, comm *mpicx.Comm, from *Store) (*Store, error) {
	own, err := comm.Dup().Get(ctx)
	if err != nil {
		return nil, err
	}
	s := &Store{
		comm: own, opts: from.opts, run: from.run, vars: slices.Clone(from.vars), err: from.err, once: from.once,
		pending: future.Ready(struct{}{}), stamp: from.stamp, saves: from.saves, saved: from.saved, stats: from.Stats(),
	}
	if err := s.enter(ctx, from); err != nil {
		abandon(ctx, own)
		return nil, err
	}
	abandon(ctx, from.comm)
	return s, nil
}

// abandon closes a communicator if it is broken. If it is not, the other ranks may not know that it
// is not used any more, so it stays open. The store's communicator before a repair was corrupted or
// revoked, so it is closed. The duplicate of an Open that has failed here may be in use at a rank
// where Open has succeeded.
func abandon(ctx context.Context, c *mpicx.Comm) {
	if c != nil && c.Revoked() {
		_ = c.Close(ctx) // waits for nobody
	}
}

// enter meets the other ranks. What it calls throws errors. The steps are the same at all ranks:
// which meetings there are depends only on options that all ranks have in common, and on the
// contributions to the meetings before.
func (s *Store) enter(ctx context.Context, from *Store) (err error) {
	defer hook.Catch(&err)
	s.introduce(ctx)
	recovered, again := s.recover(ctx, from, s.look(ctx))
	op, f := hook.Of(s.comm).Begin("Open", exchanges)
	if op == nil {
		return f.Wait(ctx)
	}
	s.epoch = op.Epoch()
	if recovered == nil {
		op.End(nil)
		return nil
	}
	// What was recovered may be at one rank alone by now. The version counts, and Open returns,
	// only when the new groups have all shards of it. No file is written here: the next Save with
	// files does that.
	p := &protection{store: s, op: op, slot: recovered, newOnce: true, again: again}
	go func() { op.End(p.run()) }() // if ctx ends, nothing else uses s
	return f.Wait(ctx)
}

// assemble is a meeting of Open or Rejoin.
func assemble[T any](ctx context.Context, s *Store, v T) []T {
	return meet(ctx, s, "Open", func() T { return v })
}

// introduce determines the groups. A rank whose directory is bad comes to the meeting, too, and
// brings its error: if it left before, the others would wait for it. Then all ranks return that
// error, so each can say what is wrong where.
func (s *Store) introduce(ctx context.Context) {
	o, rank := s.opts, s.comm.Rank()
	me := introduction{Machine: hook.Of(s.comm).Machine(), Nonce: rand.Uint64(), Run: s.run, Options: [4]int{o.k, o.m, o.every, o.keep}}
	var bad error
	if o.dir != "" {
		// The token is there before any rank can have ended the meeting, and all ranks look for it
		// after that.
		if bad = prepareDir(o.dir, rank); bad == nil && rank == 0 {
			bad = os.WriteFile(token(o.dir, me.Nonce), nil, 0o666)
		}
	}
	me.Err = textOf(bad)
	all := assemble(ctx, s, me)
	machines := make([]int, len(all))
	for r, other := range all {
		mpicx.Throw(ofRank(r, other.Err, r == rank, bad))
		if other.Options != all[0].Options {
			mpicx.Throw(fmt.Errorf("checkpoint: options of rank %d (k, m, Every, Keep; the last two are 0 without Dir) are %v, expected %v as at rank 0", r, other.Options, all[0].Options))
		}
		// A job keeps its number as long as one of its ranks lives. Files of earlier Saves are then
		// still known as its own.
		machines[r], s.run = other.Machine, cmp.Or(s.run, other.Run)
	}
	s.run = cmp.Or(s.run, all[0].Nonce)
	s.group, s.position = groupOf(rank, machines, o.scheme)
	var err error
	s.rows, err = newRows(s.group.scheme)
	mpicx.Throw(err)
	if o.dir != "" {
		_, err := os.Stat(token(o.dir, all[0].Nonce))
		s.shared = err == nil
	}
}

// token is a file by which ranks find out whether they see the same directory.
func token(dir string, nonce uint64) string {
	return filepath.Join(dir, fmt.Sprintf("%s%x", temporary(0), nonce))
}

// look returns what this rank sees in its directory; if all ranks see the same, only its share of
// it. All files are found by their names and headers, whether a manifest lists them or not. A
// manifest only shows what should be there. So a manifest that was lost, or is older than the
// files, loses no data.
func (s *Store) look(ctx context.Context) (me inventory) {
	dir, rank := s.opts.dir, s.comm.Rank()
	if dir == "" {
		return me
	}
	// One rank that sees another directory is enough: what the ranks divide among them must be seen
	// by all.
	s.shared = !slices.Contains(assemble(ctx, s, s.shared), false)
	if rank == 0 {
		// All ranks have looked for it, or the meeting would not have ended.
		_ = prepareDir(dir, 0) // removes the token
	}
	s.found, me.err = s.listDir()
	for _, f := range s.found {
		s.stamp = max(s.stamp, f.Key.Origin) // later Saves are newer than the files of any job
		// An interrupted Save leaves no damaged file under its final name (see writeNew). So such a
		// file was whole once, and if its version cannot be restored, data are lost.
		if isGood(dir, f) {
			me.Files = append(me.Files, f)
		} else {
			me.Counted = append(me.Counted, f.Key)
		}
	}
	if me.err == nil && (!s.shared || rank == 0) {
		var listed []key
		listed, me.Torn, me.err = readManifest(dir)
		me.Counted = append(me.Counted, listed...)
	}
	return me
}

// textOf and ofRank carry the error of a directory to all ranks.
func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// ofRank returns the error of rank r, or nil if it has none. At that rank it keeps its cause.
func ofRank(r int, text string, isMine bool, cause error) error {
	switch {
	case text == "":
		return nil
	case isMine:
		return fmt.Errorf("checkpoint: rank %d: %w", r, cause)
	}
	return fmt.Errorf("checkpoint: rank %d: %s", r, text)
}

// recover retrieves the newest version of which nothing is missing, unless a directory is
// unreadable. It returns nil if there is no such version. again is a group of the version that is
// this rank's new group again, or nil. All ranks see the same inventories, so they choose the same
// version. They also choose again together: whether a version needs files is part of what was
// chosen, and the meeting afterwards says whether one was bad. Each time at least one file is left
// out, so it ends.
func (s *Store) recover(ctx context.Context, from *Store, me inventory) (_ *slot, again *decoding) {
	// The slots of from are offered with their old layout and old numbers of ranks. A holding has
	// both, so ranks that have other numbers now can still read it.
	me.Stamp, me.Saves, me.Saved = s.stamp, s.saves, s.saved
	me.Slots, me.Lost, me.Err = from.describe(true), from.lost, textOf(me.err)
	for {
		all := assemble(ctx, s, me)
		for r, o := range all {
			mpicx.Throw(ofRank(r, o.Err, r == s.comm.Rank(), me.err))
		}
		s.learn(all)
		s.note(all)
		p, lost := choose(all)
		if p == nil {
			s.lost = lost
			return nil, nil
		}
		got, bad := p.fetch(ctx, s, from)
		// A file may be bad after its header. It is then left out, and all ranks choose again.
		if len(p.reads) == 0 || slices.Max(assemble(ctx, s, len(bad))) == 0 {
			return s.rebuild(p, from, got)
		}
		me.Files = slices.DeleteFunc(me.Files, func(f stored) bool { return slices.Contains(bad, f) })
		for _, f := range bad {
			me.Counted = append(me.Counted, f.Key)
		}
	}
}

// note notes which versions have files. Several ranks may see the same file, where ranks of one
// machine share a directory that the others do not see. It counts once.
func (s *Store) note(all []inventory) {
	s.files = nil
	seen, parts := make(map[stored]bool), make(map[key]int)
	for _, inv := range all {
		for _, f := range inv.Files {
			if seen[f] {
				continue
			}
			seen[f] = true
			if parts[f.Key]++; parts[f.Key] == f.Key.Parts {
				s.noteFiles(f.Key)
			}
		}
	}
}

// noteFiles notes that all files of a version exist, if it is one of the newest. Of two Saves of
// the same version the later is kept: it is first in the order of newest.
func (s *Store) noteFiles(k key) {
	s.files = append(s.files, k)
	slices.SortFunc(s.files, newest)
	s.files = slices.CompactFunc(s.files, func(a, b key) bool { return a.Version == b.Version })
	s.files = s.files[:min(len(s.files), s.opts.keep)]
}

// prune removes the files that are older than the versions that are kept. Others may still be
// needed: if some are missing that a manifest lists, they may come back. It removes only files that
// it knows, because this rank may have been declared dead without knowing it. It runs after all
// manifests list version k. Nothing is removed before as many versions are complete as Keep says.
// Errors do not matter: the next Save with files tries again.
func (s *Store) prune(k key) {
	if len(s.files) < s.opts.keep {
		return
	}
	oldest := s.files[len(s.files)-1]
	files, _ := s.listDir()
	for _, f := range files {
		known := f.Key.Run == s.run && f.Key.Origin < k.Origin || slices.Contains(s.found, f)
		if known && newest(f.Key, oldest) > 0 {
			_ = os.Remove(filepath.Join(s.opts.dir, f.name()))
		}
	}
}

// rebuild makes a slot of the recovered version. The old slots of this version and of older ones
// are kept until the next Save: this version counts when it is protected, and more ranks may die
// before. Slots of newer versions are dropped: parts of them are missing, and all ranks have
// decided so. Once variables count as unknown, because this rank may have protected others than
// those that were saved. If the new group is a group of the version again, the members that have
// their shards keep them.
func (s *Store) rebuild(p *retrieval, from *Store, got *fetching) (o *slot, again *decoding) {
	all := p.held()
	held := make([][]int, len(s.group.members))
	for i, r := range s.group.members {
		held[i] = all[r]
	}
	o = &slot{holding: s.holding(p.key, held), good: true, once: -1}
	if p.Parts != len(p.mine) {
		o.Own = p.mine
	}
	old := from.slotOf(p.key)
	s.slots = slices.DeleteFunc(slices.Clone(from.slots), func(f *slot) bool { return !f.good || newest(f.Key, p.key) < 0 })
	// The same parts in another order would be the same data, since records are found by their
	// parts.
	share := old != nil && slices.Equal(slices.Sorted(slices.Values(o.parts())), slices.Sorted(slices.Values(old.parts())))
	for i := range o.blobs {
		if share {
			o.blobs[i], old.lent = old.blobs[i].lend(), true
		} else {
			o.blobs[i] = &blob{data: got.join(o.parts(), i)}
		}
	}
	if i := slices.IndexFunc(p.groups, func(d *decoding) bool { return d.isAgain(&o.holding) }); i >= 0 {
		if again = p.groups[i]; again.keeps(s.position) {
			had := from.slotLike(again.like)
			for i, b := range had.blobs {
				o.blobs[i].shards, had.lent = b.shards, true
			}
		}
	}
	s.slots = append(s.slots, o)
	return o, again
}
