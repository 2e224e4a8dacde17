package mpicx

import (
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/signature"
)

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
	c.notInReduction("begins", op)
	mine := choice{color: Undefined, about: digest(op)}
	k := check{op: op}
	if me := slices.Index(g.all(), c.proc.rank); me >= 0 {
		ranks := g.TranslateRanks(upTo(g.Size()), c.Group())
		i := slices.Index(ranks, Undefined)
		k.that(i < 0, ClassOther, "rank %d of the %v is not in %s, expected members of it", i, g, c.name)
		mine = choice{color: slices.Min(ranks), key: me, about: digest(op, ranks), size: uint64(len(ranks))}
	}
	return splitAs(c, signature.Create, errchan.Create, mine, k.err, itself)
}

// digest returns a digest of what all members have to give alike.
func digest(arguments ...any) uint64 {
	d := fnv.New64a()
	fmt.Fprint(d, arguments...)
	return d.Sum64() | 1 // not 0
}
