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
// variables that change, the blob of Once variables, the files, the manifests.
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
	file    bool          // the version has to be written to a file
	bad     error         // why this rank can't save the version, so no rank does; nil: it can
}

// run returns nil when the data count at all ranks, with their files. All ranks get a *SaveError,
// or none. An error of the communicator may be one of this rank alone.
func (p *protection) run() error {
	err := p.spread()
	if _, isOfAll := errors.AsType[*SaveError](err); err != nil && !isOfAll {
		p.store.unsure = err
	}
	return err
}

func (p *protection) spread() error {
	s, o := p.store, p.slot
	numbers := p.numbers()
	if err := p.maximum(numbers); err != nil {
		return err
	}
	if p.filled {
		if refused := p.refusal(numbers); refused != nil {
			o.good = false
			return refused
		}
		// Some rank may have missed a Save and its stamp.
		s.stamp = numbers[ofStamp]
		o.Key.Origin, o.Stamp = s.stamp, s.stamp
	}
	// If another rank has new Once variables, this rank's old ones have to be spread too.
	if !p.newOnce && numbers[ofNewOnce] > 0 {
		p.newOnce, o.blobs[once] = true, o.blobs[once].lend()
	}

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
	for _, which := range []int{changing, once} {
		if which == once && !p.newOnce {
			continue
		}
		b := o.blobs[which]
		b.prepare(s.group.scheme, int(s.group.chunk(numbers[which])))
		a := &spreading{group: s.group, position: s.position, rows: s.rows, blob: b}
		err := p.exchange(a)
		s.count(func(c *Stats) { c.Sent += a.sent })
		if err != nil {
			return err
		}
	}
	o.Whole = true // this rank has all shards that it keeps
	writing.Wait()
	anyFailed, err := p.anyFailed(failed)
	if err != nil {
		return err
	}

	// The version counts.
	s.base, s.saved = o, max(s.saved, o.Key.Version)
	s.count(func(c *Stats) { c.Versions, c.Memory = c.Versions+1, s.memory() })
	if !p.file {
		return nil
	}
	if anyFailed {
		_ = os.Remove(filepath.Join(s.opts.dir, file.name())) // not all ranks have one, and a full disk needs the room
		return &SaveError{Version: o.Key.Version, InMemory: true, Err: failed}
	}
	// No rank is told that the version was saved before all manifests list it. If files are lost
	// later, the manifests show that they are lost.
	failed = s.list(o.Key)
	if anyFailed, err = p.anyFailed(failed); err != nil {
		return err
	}
	if anyFailed {
		return &SaveError{Version: o.Key.Version, InMemory: true, Err: failed}
	}
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

// refusal returns why no rank saves the version, or nil.
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

// exchange carries out the next exchange.
func (p *protection) exchange(a collective.Algorithm) error {
	ended := make(chan error, 1)
	p.op.Exchange(a, func(err error) { ended <- err })
	return <-ended
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
	return p.exchange(collective.AllreduceDoubling(collective.Reduction{
		Recv: element.Bytes(numbers), Op: element.Predefined[uint64](signature.Max), Element: 8,
	}))
}
