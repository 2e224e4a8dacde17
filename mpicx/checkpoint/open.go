package checkpoint

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/mpicx"
)

// Open opens a store on a communicator. It is collective, with the same options at all ranks.
// It finds the newest version that the ranks together have, in files and in the memory of ranks
// that call [Store.Rejoin] at the same time. It makes lost copies again and chooses partners
// anew. A rank that has no store opens one; a rank that has it already calls Rejoin, because
// Open would leave what is in its memory.
func Open(ctx context.Context, comm *mpicx.Comm, opts ...Option) (*Store, error) {
	o, err := read(opts)
	if err != nil {
		return nil, err
	}
	return open(ctx, comm, o, nil)
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
	if err := s.settle(ctx); err != nil {
		return nil, err
	}
	return open(ctx, comm, s.opts, s)
}

// An introduction is a rank's contribution to the first meeting in Open.
type introduction struct {
	Machine int // the number of this rank's machine
	Nonce   uint64
	Run     uint64 // of a rank that rejoins; else 0
	Options [4]int
	Err     string
}

func open(ctx context.Context, comm *mpicx.Comm, o *options, from *Store) (*Store, error) {
	own, err := comm.Dup().Get(ctx)
	if err != nil {
		return nil, err
	}
	s := &Store{comm: own, opts: o, saved: -1, hasOnce: -1}
	if from != nil {
		s.vars, s.err, s.stamp, s.saves, s.saved, s.stats = slices.Clone(from.vars), from.err, from.stamp, from.saves, from.saved, from.Stats()
		s.run = from.run
	}
	if err := s.enter(ctx, from); err != nil {
		abandon(ctx, own)
		return nil, err
	}
	if from != nil {
		abandon(ctx, from.comm)
	}
	return s, nil
}

// abandon closes a communicator if it is broken. If it is not, the other ranks may not know that it is
// not used any more, so it stays open.
func abandon(ctx context.Context, c *mpicx.Comm) {
	if c.Revoked() {
		_ = c.Close(ctx) // waits for nobody
	}
}

// enter meets the other ranks.
func (s *Store) enter(ctx context.Context, from *Store) error {
	if err := s.introduce(ctx); err != nil {
		return err
	}
	me, err := s.look(ctx)
	if err != nil {
		return err
	}
	return s.recover(ctx, from, me)
}

// introduce determines the groups.
func (s *Store) introduce(ctx context.Context) error {
	o, rank := s.opts, s.comm.Rank()
	me := introduction{hook.Of(s.comm).Machine(), rand.Uint64(), s.run, [4]int{o.k, o.m, o.every, o.keep}, ""}
	var bad error
	if o.dir != "" {
		if bad = prepareDir(o.dir, rank); bad == nil && rank == 0 {
			bad = os.WriteFile(token(o.dir, me.Nonce), nil, 0o666)
		}
		if bad != nil {
			me.Err = bad.Error()
		}
	}
	all, err := meet(ctx, s, "Open", me)
	if err != nil {
		return err
	}
	machines, options := make([]int, len(all)), make([][4]int, len(all))
	for r, other := range all {
		machines[r], options[r] = other.Machine, other.Options
		if other.Err != "" {
			return refused(r, rank, other.Err, bad)
		}
		if s.run == 0 {
			s.run = other.Run
		}
	}
	if wrong := differs(options); wrong != "" {
		return fmt.Errorf("checkpoint: %s", wrong)
	}
	if s.run == 0 {
		s.run = all[0].Nonce
	}
	s.group, s.position = groupOf(rank, machines, o.scheme)
	if s.group.k > 1 {
		for j := range s.group.m {
			row, err := newRow(s.group.scheme, j)
			if err != nil {
				return err
			}
			s.rows = append(s.rows, row)
		}
	}
	if o.dir != "" {
		_, err := os.Stat(token(o.dir, all[0].Nonce))
		s.shared = err == nil
	}
	return nil
}

// token is a file by which ranks find out whether they see the same directory.
func token(dir string, nonce uint64) string {
	return filepath.Join(dir, fmt.Sprintf("%s%x", temporary(0), nonce))
}

// look returns what this rank sees in its directory; if all ranks see the same, only its share of it.
func (s *Store) look(ctx context.Context) (me inventory, err error) {
	dir, rank, n := s.opts.dir, s.comm.Rank(), s.comm.Size()
	if dir == "" {
		return me, nil
	}
	shared, err := meet(ctx, s, "Open", s.shared)
	if err != nil {
		return me, err
	}
	s.shared = !slices.Contains(shared, false)
	if rank == 0 {
		_ = prepareDir(dir, 0) // removes the token
	}
	s.found, err = listDir(dir, func(part int) bool { return !s.shared || part%n == rank })
	for _, f := range s.found {
		s.stamp = max(s.stamp, f.Stamp) // later Saves are newer than the files of any job
		if isGood(dir, f) {
			me.Files = append(me.Files, f)
		} else {
			me.Bad = append(me.Bad, f)
		}
	}
	if err == nil && (!s.shared || rank == 0) {
		me.Listed, me.Torn, err = readManifest(dir)
	}
	text := ""
	if err != nil {
		text = err.Error()
	}
	errs, failed := meet(ctx, s, "Open", text)
	if failed != nil {
		return me, failed
	}
	for r, text := range errs {
		if text != "" {
			return me, refused(r, rank, text, err)
		}
	}
	return me, nil
}

// refused is the error of a directory that rank r can't use. Err is its cause at this rank.
func refused(r, rank int, text string, err error) error {
	if r == rank {
		return fmt.Errorf("checkpoint: rank %d: %w", r, err)
	}
	return fmt.Errorf("checkpoint: rank %d: %s", r, text)
}

// recover retrieves the newest version of which nothing is missing.
func (s *Store) recover(ctx context.Context, from *Store, me inventory) error {
	me.Saved, me.Stamp = s.saved, s.stamp
	if from != nil {
		me.Slots, me.Lost = from.describe((*slot).isGood), from.lost
	}
	for {
		all, err := meet(ctx, s, "Open", me)
		if err != nil {
			return err
		}
		for _, o := range all {
			s.stamp = max(s.stamp, o.Stamp)
		}
		s.note(all)
		p, lost := choose(all)
		if p == nil {
			s.lost = lost
			return s.begin(ctx)
		}
		got, bad, err := p.fetch(ctx, s, from)
		if err != nil {
			return err
		}
		// A file may be bad after its header. It is then left out, and all ranks choose again.
		if len(p.reads) > 0 {
			worst, err := meet(ctx, s, "Open", len(bad))
			if err != nil {
				return err
			}
			if slices.Max(worst) > 0 {
				me.Files = slices.DeleteFunc(me.Files, func(f stored) bool { return slices.Contains(bad, f) })
				me.Bad = append(me.Bad, bad...)
				continue
			}
		}
		s.rebuild(p, from, got)
		return s.begin(ctx)
	}
}

// begin agrees on the version with which the store begins.
func (s *Store) begin(ctx context.Context) error {
	all, f := s.take("Open", 1)
	if f != nil {
		return f.Wait(ctx)
	}
	if f := s.agree(ctx, all[0]); f != nil {
		return failure(ctx, f)
	}
	return nil
}

// note notes which versions have files.
func (s *Store) note(all []inventory) {
	s.files = nil
	parts := make(map[key]map[int]bool)
	for _, inv := range all {
		for _, f := range inv.Files {
			if parts[f.key()] == nil {
				parts[f.key()] = make(map[int]bool)
			}
			parts[f.key()][f.Part] = true
		}
	}
	for k, have := range parts {
		if len(have) == k.Parts {
			s.noteFiles(k)
		}
	}
}

// noteFiles notes that all files of a version exist, if it is one of the newest.
func (s *Store) noteFiles(k key) {
	s.files = append(s.files, k)
	slices.SortFunc(s.files, newest)
	s.files = slices.CompactFunc(s.files, func(a, b key) bool { return a.Version == b.Version })
	s.files = s.files[:min(len(s.files), s.opts.keep)]
}

// list notes that all ranks have written their files of a version, in the manifest too.
func (s *Store) list(k key) error {
	s.noteFiles(k)
	if rank := s.comm.Rank(); !s.shared || rank == 0 {
		return writeManifest(s.opts.dir, s.run, s.files, s.shared, rank)
	}
	return nil
}

// prune removes the files that are older than the versions that are kept. Others may still be needed: if
// some are missing that a manifest lists, they may come back. It removes only files that it knows,
// because this rank may have been declared dead without knowing it.
func (s *Store) prune(k key) {
	if len(s.files) < s.opts.keep {
		return
	}
	oldest, rank, n := s.files[len(s.files)-1], s.comm.Rank(), s.comm.Size()
	prune(s.opts.dir, func(f stored) bool {
		known := f.Run == s.run && f.Stamp < k.Origin || slices.Contains(s.found, f)
		return !known || newest(f.key(), oldest) <= 0
	}, func(part int) bool { return part == rank || s.shared && part%n == rank })
}

// rebuild makes a slot of the recovered version. Until this is protected, the old slots of this version
// and of older ones are kept: the version may not have counted, and more ranks may die.
func (s *Store) rebuild(p *retrieval, from *Store, got *fetching) {
	all := p.held()
	held := make([][]int, len(s.group.members))
	for i, r := range s.group.members {
		held[i] = all[r]
	}
	s.stamp++
	o := &slot{holding: s.holding(p.key, held), good: true, rebuilt: true}
	var old *slot
	if from != nil {
		for _, f := range from.slots {
			if !f.good || newest(f.Key, p.key) < 0 {
				continue
			}
			s.slots = append(s.slots, f)
			if f.Key == p.key && (old == nil || f.Stamp > old.Stamp) {
				old = f
			}
		}
	}
	parts := o.parts()
	switch {
	case old != nil && sameParts(parts, old.parts()):
		o.blobs = [2]*blob{old.blobs[0].lend(), old.blobs[1].lend()}
		old.lent = true
	case len(p.keep[s.comm.Rank()]) == 0 && got.isOneBlob(parts):
		o.blobs = [2]*blob{{data: got.decoded[0]}, {data: got.decoded[1]}}
	default:
		for i := range o.blobs {
			var some [][]byte
			for _, part := range parts {
				some = append(some, got.records[part][i])
			}
			o.blobs[i] = &blob{data: joinBlob(some)}
		}
	}
	s.slots = append(s.slots, o)
}

func sameParts(a, b []int) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
