package checkpoint

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
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
	all, refused := s.take("Save", exchanges, 1, exchanges)
	if refused != nil {
		return refused
	}
	prepared := make(chan *future.Future[struct{}], 1)
	if before := s.late; before != nil || !s.isReady(all[0]) {
		go func() { prepared <- s.prepare(before, all) }()
		select {
		case failed := <-prepared:
			prepared <- failed
		case <-ctx.Done():
			s.late = all[0].f
			go s.saveLate(version, all, prepared, context.Cause(ctx))
			return all[0].f
		}
		s.late = nil
	} else {
		prepared <- nil
	}
	defer all.pass()
	if failed := <-prepared; failed != nil {
		return failed
	}
	s.save(all[0], version, nil)
	return all[0].f
}

// isReady says whether a Save can begin without waiting.
func (s *Store) isReady(t *turn) bool {
	if s.pending != nil {
		select {
		case <-s.pending.Done():
		default:
			return false
		}
	}
	return t.op.Epoch() == s.epoch && s.unsure == nil && (s.base == nil || !s.base.rebuilt)
}

// prepare waits until a Save can begin, and returns nil or the future of an error. before is the Save
// before it, if that is late.
func (s *Store) prepare(before *future.Future[struct{}], all turns) *future.Future[struct{}] {
	ctx := context.Background() // an error of the communicator ends everything that is waited for
	if before != nil {
		<-before.Done()
	}
	if err := s.settlePending(ctx); err != nil {
		return future.Failed[struct{}](err)
	}
	save, agreement, again := all[0], all[1], all[2]
	if save.op.Epoch() != s.epoch {
		if failed := s.agree(ctx, agreement); failed != nil {
			return failed
		}
	} else if s.unsure != nil {
		return future.Failed[struct{}](s.unsure)
	}
	if s.base != nil && s.base.rebuilt {
		return s.protectBase(ctx, again)
	}
	return nil
}

// saveLate is the rest of a Save whose context has ended while it was prepared. The program has
// continued, and changes the variables.
func (s *Store) saveLate(version int, all turns, prepared <-chan *future.Future[struct{}], cause error) {
	if failed := <-prepared; failed != nil {
		all[0].used = true
		all[0].op.End(cause)
	} else {
		s.save(all[0], version, cause)
	}
	all.pass()
}

// save begins to spread a version. If bad is not nil, this rank can't save it, and so no rank does.
func (s *Store) save(t *turn, version int, bad error) {
	s.saves++
	s.stamp++ // a version that is saved twice gets another stamp
	p := &protection{store: s, slot: s.free(), filled: true, bad: bad}
	p.file = s.opts.dir != "" && s.saves%s.opts.every == 0
	if bad != nil {
		p.slot.Key.Version = version
	} else {
		p.newOnce, p.once = s.once != s.hasOnce || !s.isOwn(s.base), s.once
		p.bad = p.fill(version)
	}
	p.start(t)
}

// isOwn says whether a slot has this rank's part alone, as ranks are numbered now. The next version can
// then share its Once variables. After Shrink this is not so.
func (s *Store) isOwn(o *slot) bool {
	return o != nil && o.Key.Parts == s.comm.Size() && slices.Equal(o.parts(), []int{s.comm.Rank()})
}

// fill copies the variables to the slot.
func (p *protection) fill(version int) error {
	s, o := p.store, p.slot
	n, rank := s.comm.Size(), s.comm.Rank()
	held := make([][]int, len(s.group.members))
	for i, r := range s.group.members {
		held[i] = []int{r}
	}
	o.holding = s.holding(key{version, s.run, s.stamp, n}, held)
	oldest := 0
	if s.base != nil {
		oldest = s.base.Key.Version
	}
	if s.err != nil {
		return s.err
	}
	if version < oldest {
		return fmt.Errorf("checkpoint: version %d, expected at least %d", version, oldest)
	}
	var err error
	if o.blobs[once] = nil; p.newOnce {
		o.blobs[once] = new(blob)
		o.blobs[once].data, err = newBlob(nil, rank, s.of(once))
	} else {
		o.blobs[once] = s.base.blobs[once]
	}
	if err == nil {
		o.blobs[changing].data, err = newBlob(o.blobs[changing].data, rank, s.of(changing))
	}
	o.good = err == nil
	return err
}

// holding returns the holding of a new slot.
func (s *Store) holding(k key, held [][]int) holding {
	return holding{Key: k, Stamp: s.stamp, Ranks: s.comm.Size(), Members: s.group.members, K: s.group.k, M: s.group.m, Pos: s.position, Held: held}
}

// free returns a slot that is not base, and forgets all others.
func (s *Store) free() *slot {
	var spare *slot
	for _, o := range s.slots {
		if o != s.base && !o.lent {
			spare = o
		}
	}
	if spare == nil {
		spare = new(slot)
	}
	if spare.blobs[changing] == nil {
		spare.blobs[changing] = new(blob)
	}
	spare.Whole, spare.good, spare.rebuilt = false, false, false
	s.slots = []*slot{spare}
	if s.base != nil {
		s.slots = append(s.slots, s.base)
	}
	return spare
}

// protectBase spreads the data of base, because some rank may not have all its shards: Restore was not
// called after Rejoin, or an error has interrupted it.
func (s *Store) protectBase(ctx context.Context, t *turn) *future.Future[struct{}] {
	s.protect(t)
	if err := s.settlePending(ctx); err != nil {
		return future.Failed[struct{}](err)
	}
	if s.unsure != nil {
		return t.f
	}
	return nil
}

// protect begins to spread the data of base.
func (s *Store) protect(t *turn) {
	s.base.Whole = false
	(&protection{store: s, slot: s.base, newOnce: true}).start(t)
}

// exchanges is the number of exchanges of a protection: the sizes, the blob of Once variables, the
// other blob, the files, the manifests.
const exchanges = 5

// A protection spreads the data of a slot among the group while the program continues. Its steps are
// its methods, in order. Each is called on a separate goroutine, when the exchange of the step before
// has ended.
type protection struct {
	store   *Store
	op      hook.Background
	slot    *slot
	filled  bool // the slot was filled from the variables
	newOnce bool // the blob of Once variables has to be spread too
	once    int  // number of Once variables protected so far, which the slot has
	file    bool // the version has to be written to a file
	bad     error

	written   chan struct{} // closed when the file is written; nil: there is none
	failed    error         // the error of writing it, when written is closed, or the manifest
	name      string        // the file's
	sentBytes int64
}

func (p *protection) start(t *turn) {
	t.used = true
	p.op, p.store.pending = t.op, t.f
	version := uint64(p.slot.Key.Version)
	numbers := []uint64{0, 0, 0, 0, math.MaxUint64, version, ^version, p.store.stamp}
	if p.newOnce {
		numbers[2] = 1
	}
	if p.bad != nil {
		numbers[3] = 1
	} else {
		numbers[changing] = uint64(len(p.slot.blobs[changing].data))
		numbers[once] = uint64(len(p.slot.blobs[once].data))
	}
	if limit := p.store.opts.limit; limit > 0 {
		numbers[4] = uint64(limit) // the least of all ranks counts
	}
	numbers[4] = ^numbers[4]
	sizes, result := maximum(numbers)
	go p.op.Exchange(sizes, func(err error) { go p.sized(result(), err) })
}

// sized is called when all ranks know the greatest length of each blob.
func (p *protection) sized(numbers []uint64, err error) {
	s, o := p.store, p.slot
	if err != nil {
		p.fail(err)
		return
	}
	if numbers[3] > 0 {
		o.good = false
		p.end(&SaveError{Version: o.Key.Version, Err: p.bad})
		return
	}
	if numbers[5] != ^numbers[6] {
		o.good = false
		p.end(&SaveError{Version: o.Key.Version, Err: fmt.Errorf("checkpoint: ranks save versions %d and %d at a time, expected all the same", ^numbers[6], numbers[5])})
		return
	}
	if p.filled { // some rank may have missed a Save and its stamp
		s.stamp = numbers[7]
		o.Key.Origin, o.Stamp = s.stamp, s.stamp
	}
	// If another rank has new Once variables, this rank's old ones have to be spread too.
	if all := numbers[2] > 0; all && !p.newOnce {
		p.newOnce, o.blobs[once] = true, o.blobs[once].lend()
	}
	var chunks [2]int
	need := uint64(0)
	for i, n := range numbers[:2] {
		k, m := uint64(s.group.k), uint64(s.group.m)
		chunk := (n + k - 1) / k
		chunks[i] = int(chunk)
		versions := uint64(2)
		if i == once && !p.newOnce {
			versions = 1
		}
		need += versions * (k + m) * chunk
	}
	if limit := ^numbers[4]; need > limit {
		o.good = !p.filled
		p.end(&SaveError{Version: o.Key.Version, Err: &LimitError{int64(need), int64(limit)}})
		return
	}
	if p.file {
		p.write()
	}
	o.blobs[changing].prepare(s.group.scheme, chunks[changing])
	if p.newOnce {
		o.blobs[once].prepare(s.group.scheme, chunks[once])
	}
	p.spread(changing, func() {
		if p.newOnce {
			p.spread(once, p.spreadAll)
		} else {
			p.spreadAll()
		}
	})
}

// prepare makes room for k chunks of data and m shards.
func (b *blob) prepare(c scheme, chunk int) {
	b.chunk = chunk
	if short := c.k*chunk - len(b.data); short > 0 {
		b.data = append(b.data, make([]byte, short)...)
	}
	if len(b.shards) != c.m || c.m > 0 && len(b.shards[0]) != chunk {
		b.shards = make([][]byte, c.m)
		for j := range b.shards {
			b.shards[j] = expect(make([]byte, chunk))
		}
	}
}

// spread calls then when the blob's shards are in place.
func (p *protection) spread(which int, then func()) {
	s := p.store
	a := &spreading{group: s.group, position: s.position, rows: s.rows, blob: p.slot.blobs[which]}
	p.op.Exchange(a, func(err error) {
		p.sentBytes += a.sent
		if err != nil {
			go p.fail(err)
			return
		}
		go then()
	})
}

// write starts to write the slot to a file.
func (p *protection) write() {
	s, o := p.store, p.slot
	p.written = make(chan struct{})
	records, err := o.records(s.comm.Rank())
	h := header{run: s.run, stamp: o.Key.Origin, version: o.Key.Version, part: s.comm.Rank(), parts: o.Key.Parts}
	p.name = h.stored().name()
	go func() {
		defer close(p.written)
		if p.failed = err; err == nil {
			p.failed = writeNew(s.opts.dir, p.name, h.part, func(w io.Writer) error {
				return writeFile(w, h, records)
			})
		}
	}()
}

// spreadAll is called when this rank has all shards that it keeps.
func (p *protection) spreadAll() {
	p.slot.Whole = true
	if p.written != nil {
		<-p.written
	}
	p.meet(p.counts)
}

// counts is called when the version counts, and ends the protection.
func (p *protection) counts(failed bool, err error) {
	s, o := p.store, p.slot
	if err != nil {
		p.fail(err)
		return
	}
	s.base, s.saved, o.rebuilt = o, max(s.saved, o.Key.Version), false
	if p.filled {
		s.hasOnce = p.once
	}
	s.count(func(c *Stats) {
		c.Versions++
		c.Memory = s.memory()
	})
	switch {
	case failed:
		_ = os.Remove(filepath.Join(s.opts.dir, p.name)) // not all ranks have one, and a full disk needs the room
		p.end(&SaveError{Version: o.Key.Version, InMemory: true, Err: p.failed})
	case p.file:
		p.failed = s.list(o.Key)
		p.meet(p.listed)
	default:
		p.end(nil)
	}
}

// listed is called when the manifests of all ranks list the version. No rank is told that it was saved
// before: what is lost later is then known to be lost.
func (p *protection) listed(failed bool, err error) {
	k := p.slot.Key
	switch {
	case err != nil:
		p.fail(err)
	case failed:
		p.end(&SaveError{Version: k.Version, InMemory: true, Err: p.failed})
	default:
		p.store.prune(k)
		p.store.count(func(c *Stats) { c.Files++ })
		p.end(nil)
	}
}

// meet calls then when all ranks have come, with whether one of them has failed.
func (p *protection) meet(then func(failed bool, err error)) {
	numbers := []uint64{0}
	if p.failed != nil {
		numbers[0] = 1
	}
	all, result := maximum(numbers)
	p.op.Exchange(all, func(err error) { go then(result()[0] > 0, err) })
}

// fail ends the protection with an error of the communicator, which other ranks may not have.
func (p *protection) fail(err error) {
	p.store.unsure = err
	p.end(err)
}

func (p *protection) end(err error) {
	if p.written != nil {
		<-p.written
	}
	p.store.count(func(c *Stats) { c.Sent += p.sentBytes })
	p.op.End(err)
}
