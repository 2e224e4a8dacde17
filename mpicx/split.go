package mpicx

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"runtime"
	"slices"
	"sync"
	"weak"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/internal/element"
	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/signature"
)

// Split makes a communicator of each set of ranks that give the same color. In it ranks are
// ordered by key and then by their rank in c (MPI_Comm_split). A color is not negative, or it is
// Undefined: such a rank gets a nil Comm. It is collective. Use [Comm.Create] if all ranks know
// the members of their communicators, and [Comm.Dup] for all ranks of c.
func (c *Comm) Split(color, key int) *future.Future[*Comm] {
	k := check{op: "Split"}
	k.that(color >= 0 || color == Undefined, ClassOther, "color %d, expected one that is not negative, or Undefined", color)
	return splitAs(c.of(), signature.Split, errchan.Split, choice{color: color, key: key}, k.err, (*comm).handle)
}

// SplitShared makes a communicator of the ranks of each machine, which can share memory
// (MPI_Comm_split_type with MPI_COMM_TYPE_SHARED). In it ranks are ordered by key and then by
// their rank in c. Goroutine ranks, and the ranks of mpicxrun, are all on one machine. It is
// collective.
func (c *Comm) SplitShared(key int) *future.Future[*Comm] {
	if c == nil {
		return nowhere[*Comm]("SplitShared")
	}
	return splitAs(c.of(), signature.SplitShared, errchan.SplitShared, choice{color: c.t.Machine(c.rank), key: key}, nil, (*comm).handle)
}

// badColor is the color of a rank whose arguments are bad.
const badColor = Undefined - 1

// splitAs makes a communicator of the ranks of each color. If bad is not nil, the arguments of this
// rank are bad: it gets this error, and all others get one too.
func splitAs[T any](c *comm, kind signature.Kind, calls errchan.Calls, mine choice, bad error, end func(*comm) T) *future.Future[T] {
	if c == nil {
		return nowhere[T](kind.String())
	}
	if bad != nil {
		mine.color = badColor
	}
	gather := &collective.AllgatherShared{Send: element.Bytes([]choice{mine})}
	return assembled(c, kind, calls, gather, bad, func() (*part, error) {
		parts, err := c.partition(gather.All)
		if err != nil {
			return nil, mpiErrorf(kind.String(), ClassOther, "%v", err)
		}
		return parts[mine.color], nil
	}, end)
}

// A choice is the arguments of one rank in Split. In other operations all members of a part have to
// give further arguments alike, such as the list of members. about is then a digest of these
// arguments, and size the number of members, or 0 if any number is right.
type choice struct {
	color, key  int
	about, size uint64
}

// partitions has the result for choices that ranks of this process share, as long as one of them
// holds the choices. Otherwise each rank would need the space and time for the choices of all.
var partitions sync.Map // func() (map[int]*part, error), by weak.Pointer[byte] to the first byte of the choices

// partition returns the parts of a Split by their colors.
func (c *comm) partition(choices []byte) (map[int]*part, error) {
	first := &choices[0]
	key := weak.Make(first)
	parts, known := partitions.Load(key)
	if !known {
		parts, known = partitions.LoadOrStore(key, sync.OnceValues(func() (map[int]*part, error) { return c.partsOf(choices) }))
		if !known {
			runtime.AddCleanup(first, func(key weak.Pointer[byte]) { partitions.Delete(key) }, key)
		}
	}
	defer runtime.KeepAlive(first)
	return parts.(func() (map[int]*part, error))()
}

func (c *comm) partsOf(choices []byte) (map[int]*part, error) {
	parts := make(map[int]*part)
	all := make([]choice, c.size)
	copy(element.Bytes(all), choices)
	for r, m := range all {
		switch {
		case m.color == Undefined:
			continue
		case m.color < Undefined:
			return nil, fmt.Errorf("rank %d had a bad argument", r)
		}
		if parts[m.color] == nil {
			parts[m.color] = &part{color: m.color}
		}
		parts[m.color].members = append(parts[m.color].members, r)
	}
	for _, color := range slices.Sorted(maps.Keys(parts)) {
		p := parts[color]
		p.members = slices.Clip(p.members)
		if err := concord(all, p.members); err != nil {
			return nil, err
		}
		slices.SortStableFunc(p.members, func(a, b int) int { return cmp.Compare(all[a].key, all[b].key) })
		p.worldRanks = c.worldRanksOf(p.members)
	}
	return parts, nil
}

// concord returns an error unless the members of a part, in the order of their ranks, have given
// the same further arguments.
func concord(all []choice, members []int) error {
	first := members[0]
	for _, r := range members {
		if all[r].about != all[first].about || all[r].size != all[first].size {
			return fmt.Errorf("rank %d has other arguments than rank %d, expected the same at all members", r, first)
		}
	}
	if size := all[first].size; size > 0 && size != uint64(len(members)) {
		return fmt.Errorf("%d of the %d members that rank %d names have other arguments, expected the same at all members", size-uint64(len(members)), size, first)
	}
	return nil
}

// Create makes a communicator of the members of a group, in the group's order
// (MPI_Comm_create). It is collective over c. Several can be made at once, of groups that have
// no member in common. All members of a group pass that group; otherwise all ranks of c get an
// error. A rank that is in no group passes any group, for example nil, and gets a nil Comm.
// [Comm.Split] needs no groups: each rank passes a color.
func (c *Comm) Create(g *Group) *future.Future[*Comm] {
	const op = "Create"
	if c == nil {
		return nowhere[*Comm](op)
	}
	mine := choice{color: Undefined, about: digest(op)}
	k := check{op: op}
	if me := slices.Index(g.all(), c.proc.rank); me >= 0 {
		ranks := g.TranslateRanks(upTo(g.Size()), c.Group())
		i := slices.Index(ranks, Undefined)
		k.that(i < 0, ClassOther, "rank %d of the %v is not in %s, expected members of it", i, g, c.name)
		mine = choice{color: slices.Min(ranks), key: me, about: digest(op, ranks), size: uint64(len(ranks))}
	}
	return splitAs(c.of(), signature.Create, errchan.Create, mine, k.err, (*comm).handle)
}

// digest returns a digest of the arguments that must be the same at all members.
func digest(arguments ...any) uint64 {
	d := fnv.New64a()
	fmt.Fprint(d, arguments...)
	return d.Sum64() | 1 // not 0
}
