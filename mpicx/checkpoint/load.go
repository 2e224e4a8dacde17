package checkpoint

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/mpicx"
)

// None is a rank for [Load] that asks for nothing.
const None = -1

// Load returns a variable that some rank has saved in a version, numbered as it was then. It is
// for programs that shrink, in which the survivors take over the data of the dead. [Store.Restore]
// sets a rank's own variables. Load is collective: all ranks call it, each for the variable that
// it needs, or with None for rank. The version is the one that Restore has returned, or one of
// which there are files. A number is returned as a slice of one. A rank whose ctx has ended sends
// the others nothing, so they wait until it tells them of its error, as in TryAll.
func Load[T mpicx.Scalar](ctx context.Context, s *Store, name string, rank, version int) ([]T, error) {
	return LoadValue[[]T](ctx, s, name, rank, version)
}

// LoadValue is Load of a variable of any type.
func LoadValue[T any](ctx context.Context, s *Store, name string, rank, version int) (v T, err error) {
	got, err := s.load(ctx, request{name, rank, version})
	if err != nil || rank == None {
		return v, err
	}
	x, err := newVariable(name, &v)
	if err != nil {
		return v, err
	}
	if x.kind == sliceOf|got.Kind { // a number, as a slice of one
		got.Kind = x.kind
	}
	set, err := x.decoded(got)
	if err == nil {
		set()
	}
	return v, err
}

// A request names the variable that a rank wants to load. Part is the number that a rank had in the
// Save, so it may be greater than any rank of today.
type request struct {
	Name          string
	Part, Version int
}

// An offer is a rank's contribution to the meeting of a Load: its request, and the data that it can
// provide. Version and Parts are of base, the only version in memory that counts. Files may be of
// any version.
type offer struct {
	Request request
	Version int
	Parts   []int
	Files   []stored
	Loads   int
}

// has says whether the rank has the requested variable in memory. The version's number is enough:
// after the Restore that has returned it, base is the same Save at all ranks.
func (o *offer) has(r request) bool {
	return o.Version == r.Version && slices.Contains(o.Parts, r.Part)
}

// A reply is the answer to a rank that has requested a variable from another rank. An error travels
// as a reply, because the rank that asked waits for a message in any case.
type reply struct {
	Saved saved
	Err   string
}

func (s *Store) load(ctx context.Context, r request) (got saved, err error) {
	if s == nil {
		return got, nilStore("Load")
	}
	defer hook.Catch(&err)
	all := meet(ctx, s, "Load", func() offer {
		me := offer{Request: r, Version: -1, Loads: s.loads}
		if s.base != nil {
			me.Version, me.Parts = s.base.Key.Version, s.base.parts()
		}
		if s.opts.dir != "" {
			me.Files, _ = s.listDir() // other ranks may see what this one does not
		}
		return me
	})
	// An earlier error may have ended a Load at some ranks only.
	for _, o := range all {
		s.loads = max(s.loads, o.Loads)
	}
	// A reply that nobody received, because the context of a Load had ended, keeps its old tag. No
	// later Load takes it for its own.
	s.loads++
	// Each rank computes the providers of all, so a provider need not be asked. Memory at any rank
	// is preferred to a file at any rank: it needs no disk, and base has counted.
	from := make([]int, len(all)) // by rank: the rank that has what it wants; -1: none, or it wants nothing
	for rank, o := range all {
		if from[rank] = provider(rank, all, func(of offer) bool { return of.has(o.Request) }); from[rank] < 0 {
			from[rank] = provider(rank, all, func(of offer) bool { return s.file(of.Files, o.Request) != nil })
		}
	}
	return s.serve(ctx, all, from)
}

// provider returns the rank that provides the data that a rank requests: that rank itself if it has
// them, or else the lowest rank that has. It returns -1 if there is none. The answer has to be the
// same at all ranks, or one would wait for a message that none sends.
func provider(rank int, all []offer, has func(offer) bool) int {
	if has(all[rank]) {
		return rank
	}
	return slices.IndexFunc(all, has)
}

// file returns the file that has the requested variable. It prefers the file of a version that all
// ranks have written. There may be two files of the same part and version: of two jobs, or of a
// Save that was repeated.
func (s *Store) file(files []stored, r request) (found *stored) {
	for i, f := range files {
		if f.Part == r.Part && f.Key.Version == r.Version && (found == nil || slices.Contains(s.files, f.Key)) {
			found = &files[i]
		}
	}
	return found
}

// serve sends the variables that other ranks request from this rank, and receives the one that this
// rank has requested. All sends are begun before the receive, so two ranks that serve each other do
// not wait in a circle. A request that cannot be met is an error of the rank that has made it
// alone. The others are served.
func (s *Store) serve(ctx context.Context, all []offer, from []int) (got saved, err error) {
	me, tag := s.comm.Rank(), s.loads // a tag for this Load alone
	var sends []future.Waiter
	for rank, o := range all {
		if from[rank] != me {
			continue
		}
		v, bad := s.find(o.Request, &all[me])
		if rank == me {
			got, err = v, bad
			continue
		}
		sends = append(sends, mpicx.SendValue(s.comm, reply{v, textOf(bad)}, rank, tag))
	}
	if r := all[me].Request; from[me] < 0 && r.Part != None {
		expected := fmt.Sprintf("expected version %d", all[me].Version)
		if all[me].Version == None {
			expected = "nor is any other"
		}
		err = fmt.Errorf("checkpoint: version %d of rank %d is not there, %s", r.Version, r.Part, expected)
	}
	if from[me] >= 0 && from[me] != me {
		r, failed := mpicx.RecvValue[reply](s.comm, from[me], tag).Get(ctx)
		if failed != nil {
			return got, failed
		}
		got, err = r.Saved, ofRank(from[me], r.Err, false, nil)
		s.count(func(c *Stats) { c.Fetched += int64(len(got.Data)) })
	}
	return got, cmp.Or(future.WaitAll(ctx, sends...), err)
}

// find returns the requested variable, from memory or from a file. The offer is that of the
// exchange, not looked up again: the others have chosen this rank by it. A file may have been
// removed or damaged since, so reading it may fail, and it is checked in full.
func (s *Store) find(r request, mine *offer) (saved, error) {
	var records [2][]byte
	var err error
	if mine.has(r) {
		records, err = s.base.records(r.Part)
	} else {
		records, err = readPart(s.opts.dir, *s.file(mine.Files, r))
	}
	if err != nil {
		return saved{}, err
	}
	vars, err := variablesOf(records[:]...)
	if err != nil {
		return saved{}, err
	}
	v, ok := vars[r.Name]
	if !ok {
		err = fmt.Errorf("checkpoint: version %d of rank %d has no variable %q", r.Version, r.Part, r.Name)
	}
	return v, err
}
