package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"sync"

	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/internal/element"
	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/internal/signature"
)

// exchanges is the number of exchanges of a protection: the numbers of all ranks, the blob of
// variables that change, the blob of Once variables, the files, the manifests. The numbers of all
// five are taken when the operation begins, as many at each rank. A protection that has no use for
// the last ones ends without them, at all ranks alike: which ones there are follows from the first
// exchange and from what all ranks know.
const exchanges = 5

// A protection spreads the data of a slot among the group: of a Save while the program continues,
// and of a version that Open has recovered.
type protection struct {
	store   *Store
	op      hook.Background
	slot    *slot
	filled  bool          // the slot was filled from the variables
	copied  chan struct{} // closed when it was
	newOnce bool          // the blob of Once variables has to be spread too
	again   *decoding     // the group from which members keep their shards; nil: none do
	file    bool          // the version has to be written to a file
	bad     error         // why this rank can't save the version, so no rank does; nil: it can
}

// run returns nil when the data count at all ranks, with their files. All ranks get a *SaveError,
// or none. An error of the communicator may be one of this rank alone. Only an error of the
// communicator makes base unsure. A *SaveError was decided by an exchange, so all ranks know that
// the version does not count, or that it does and only its files are missing.
func (p *protection) run() error {
	err := p.spread()
	if _, isOfAll := errors.AsType[*SaveError](err); err != nil && !isOfAll {
		p.store.unsure = err
	}
	return err
}

// Until the version counts, base stays what it was, in memory that this protection does not write
// to. An error or a death at any exchange before then leaves base whole at all ranks. Each exchange
// after the first is begun only when what is before it was done at this rank, and a maximum ends
// only when all ranks have begun it. So if the version counts at one rank, all ranks have their
// shards of it.
func (p *protection) spread() error {
	s, o := p.store, p.slot
	numbers := p.numbers()
	// Before the first byte is sent, all ranks learn whether one of them cannot save the version,
	// and the lengths. From here on all use the same chunk, so the messages fit without lengths of
	// their own.
	if err := p.maximum(numbers); err != nil {
		return err
	}
	if p.filled {
		// A rank that has copied its variables must not offer them in a Rejoin: the version was
		// refused, and the program is told so.
		if refused := p.refusal(numbers); refused != nil {
			o.good = false
			return refused
		}
		// Some rank may have missed a Save and its stamp.
		s.stamp = numbers[ofStamp]
		o.Key.Origin, o.Stamp = s.stamp, s.stamp
	}
	// The blob is lent, so that base keeps its shards of the old data if this protection fails.
	if !p.newOnce && numbers[ofNewOnce] > 0 {
		p.newOnce, o.blobs[once] = true, o.blobs[once].lend()
	}

	// The disk and the network work at the same time. Every return waits for the file, because its
	// records are in the memory of the slot, which the next Save overwrites.
	var failed error // of a file of this rank
	var writing sync.WaitGroup
	defer writing.Wait()
	file := stored{o.Key, s.comm.Rank()}
	if p.file {
		records, err := o.records(file.Part) // before the blobs are padded
		writing.Go(func() {
			if failed = err; err == nil {
				failed = writeNew(s.opts.dir, file.name(), file.Part, func(w io.Writer) error { return writeFile(w, file, records) })
			}
		})
	}
	// Members of a group expect each other's chunks in this order.
	for _, which := range []int{changing, once} {
		if which == once && !p.newOnce {
			continue
		}
		b := o.blobs[which]
		b.prepare(s.group.scheme, int(s.group.chunk(numbers[which])))
		a := &spreading{group: s.group, position: s.position, keeps: make([]bool, len(s.group.members)), rows: s.rows, blob: b}
		for at := range a.keeps {
			a.keeps[at] = p.again != nil && p.again.like.Chunk[which] == b.chunk && p.again.keeps(at)
		}
		err := exchange(p.op, a)
		s.count(func(c *Stats) { c.Sent += a.sent })
		if err != nil {
			return err
		}
	}
	o.Whole = true // this rank has all shards that it keeps
	writing.Wait()
	// This exchange is needed without files, too: when it ends, all ranks have all their shards.
	// Until then the death of one rank may still make the data of another unrecoverable.
	anyFailed, err := p.anyFailed(failed)
	if err != nil {
		return err
	}

	// From here the version before may be overwritten by the next Save.
	s.base, s.saved = o, max(s.saved, o.Key.Version)
	s.count(func(c *Stats) { c.Versions, c.Memory = c.Versions+1, s.memory() })
	if !p.file {
		return nil
	}
	if anyFailed {
		_ = os.Remove(filepath.Join(s.opts.dir, file.name())) // not all ranks have one, and a full disk needs the room
		return &SaveError{Version: o.Key.Version, InMemory: true, Err: failed}
	}
	// All files are there, by the exchange above. A manifest that was written before them could
	// list a version that a crash has kept from being complete, and Open could not tell it from one
	// that was lost.
	failed = s.list(o.Key)
	if anyFailed, err = p.anyFailed(failed); err != nil {
		return err
	}
	if anyFailed {
		return &SaveError{Version: o.Key.Version, InMemory: true, Err: failed}
	}
	// Older files are removed last. As long as one manifest may not list this version, an older one
	// is not given up.
	s.prune(o.Key)
	s.count(func(c *Stats) { c.Files++ })
	return nil
}

// The numbers of which all ranks find the maxima, after the lengths of the two blobs.
const (
	ofNewOnce  = 2 + iota // 1: Once variables have to be spread
	ofBad                 // 1: this rank can't save the version
	ofLimit               // the complement of MaxBytes: the lowest counts
	ofVersion             // the version
	ofVersions            // its complement: the two show whether all versions are the same
	ofStamp               // the stamp
)

// The minimum of a number is found as the maximum of its complement, so one exchange serves both. A
// rank that cannot save the version sends its version and limit, too, but no lengths: the version
// is refused at any rate.
func (p *protection) numbers() []uint64 {
	version, limit := uint64(p.slot.Key.Version), uint64(math.MaxUint64)
	if l := p.store.opts.limit; l > 0 {
		limit = uint64(l)
	}
	n := []uint64{ofLimit: ^limit, ofVersion: version, ofVersions: ^version, ofStamp: p.store.stamp}
	if p.bad != nil {
		n[ofBad] = 1
		return n
	}
	if p.newOnce {
		n[ofNewOnce] = 1
	}
	for which, b := range p.slot.blobs {
		n[which] = uint64(len(b.data))
	}
	return n
}

// refusal returns why no rank saves the version, or nil. It depends on the maxima alone, except for
// the cause, which only the rank that has it can name. The need is that of two versions of the
// changing data, and of Once data once, or twice while new ones take the place of those of base.
func (p *protection) refusal(n []uint64) *SaveError {
	k, m := uint64(p.store.group.k), uint64(p.store.group.m)
	e := &SaveError{Version: p.slot.Key.Version}
	need := (1 + n[ofNewOnce]) * (k + m) * p.store.group.chunk(n[once])
	need += 2 * (k + m) * p.store.group.chunk(n[changing])
	switch limit := ^n[ofLimit]; {
	case n[ofBad] > 0:
		e.Err = p.bad
	case n[ofVersion] != ^n[ofVersions]:
		e.Err = fmt.Errorf("checkpoint: ranks save versions %d and %d at a time, expected all the same", ^n[ofVersions], n[ofVersion])
	case need > limit:
		e.Err = &LimitError{int64(need), int64(limit)}
	default:
		return nil
	}
	return e
}

// prepare makes room for k chunks of data and m shards. Old shards are used again if their length
// is right. Their contents need not be cleared: copies overwrite them, and spreading clears them
// where parities are summed up.
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

// anyFailed says whether one of the ranks has failed.
func (p *protection) anyFailed(failed error) (bool, error) {
	numbers := []uint64{0}
	if failed != nil {
		numbers[0] = 1
	}
	err := p.maximum(numbers)
	return numbers[0] > 0, err
}

// maximum replaces numbers by their maxima over all ranks.
func (p *protection) maximum(numbers []uint64) error {
	return exchange(p.op, collective.AllreduceDoubling(collective.Reduction{
		Recv: element.Bytes(numbers), Op: element.Predefined[uint64](signature.Max), Element: 8,
	}))
}
