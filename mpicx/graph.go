package mpicx

import (
	"cmp"
	"maps"
	"slices"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/internal/element"
	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/wire"
)

// A Graph is a communicator whose ranks have declared their neighbours. It has the methods of
// a Comm, and functions such as [Send] take its field Comm. Communicators derived from that have
// no graph, nor do those that Shrink and Replace make: after a repair call GraphCreate again.
type Graph struct {
	*Comm
	neighbors *neighborhood
}

// GraphCreate makes a communicator of the ranks of c, in which this rank receives from sources
// and sends to destinations, in these orders (MPI_Dist_graph_create_adjacent). It is collective
// over c. Both ranks of an edge declare it, equally often; otherwise all ranks get an *MPIError
// that names the first edge which only one rank has declared.
func GraphCreate(c *Comm, sources, destinations []int) *future.Future[*Graph] {
	const op = "GraphCreate"
	if c == nil {
		return nowhere[*Graph](op)
	}
	k := check{op: op}
	for _, r := range slices.Concat(sources, destinations) {
		k.that(r >= 0 && r < c.size, ClassRank, "neighbour %d of %s, expected 0 to %d", r, c.name, c.size-1)
	}
	sources, destinations = slices.Clone(sources), slices.Clone(destinations)
	a := &edges{from: sources, to: destinations, rank: c.rank}
	return assembled(c.of(), signature.GraphCreate, errchan.GraphCreate, a, k.err, func() (*part, error) {
		if err := a.odd(); err != nil { // a rank that does not exist has declared no edge, so its edges are odd
			return nil, err
		}
		return &part{worldRanks: c.ledger.Ranks()}, nil
	}, func(d *comm) *Graph {
		return &Graph{d.handle(), &neighborhood{comm: d, from: sources, to: destinations}}
	})
}

// Sources are the ranks that this rank receives from (MPI_Dist_graph_neighbors).
func (g *Graph) Sources() []int { return slices.Clone(g.neighbors.from) }

// Destinations are the ranks that this rank sends to.
func (g *Graph) Destinations() []int { return slices.Clone(g.neighbors.to) }

func (g *Graph) neighborhood() *neighborhood {
	if g == nil {
		return nil
	}
	return g.neighbors
}

// edges checks that both ranks of each edge have declared it. If they have, a digest of all edges
// as their sources have declared them, minus one of all edges as their destinations have, is 0.
// This reduction costs no more than a barrier. Only if the result is not 0 do all ranks get all
// edges.
type edges struct {
	from, to []int
	rank     int

	total [1]uint64 // the digest, and then the sum of all
	sum   *collective.Call
	steps int // number of steps of sum, when it has ended
	all   collective.AllgatherAny
}

func (a *edges) Step(k int, x *collective.Exchange) bool {
	if k == 0 {
		a.total[0] = a.digest()
		a.sum = collective.AllreduceDoubling(collective.Reduction{
			Recv: element.Bytes(a.total[:]), Op: element.Predefined[uint64](signature.Sum), Element: 8,
		})
	}
	if a.steps == 0 {
		if a.sum.Step(k, x) {
			return true
		}
		a.steps = k + 1
		return true // the messages of this step have to be exchanged first
	}
	if a.total[0] == 0 {
		return false
	}
	if k == a.steps {
		for _, ranks := range [][]int{a.from, a.to} {
			a.all.Send = wire.AppendRanks(a.all.Send, ranks)
		}
	}
	return a.all.Step(k-a.steps, x)
}

func (a *edges) digest() (sum uint64) {
	for _, r := range a.to {
		sum += digest(a.rank, r)
	}
	for _, r := range a.from {
		sum -= digest(r, a.rank)
	}
	return sum
}

// odd returns an error if one rank of an edge has declared it more often than the other.
func (a *edges) odd() error {
	const op = "GraphCreate"
	type edge struct{ from, to int }
	declared := make(map[edge][2]int) // by its source, by its destination
	for r, part := range a.all.Parts {
		d, n := wire.NewReader(part), len(a.all.Parts)
		for range d.Below(d.Len()+1, "number of sources") {
			e := edge{d.Below(n, "rank"), r}
			declared[e] = [2]int{declared[e][0], declared[e][1] + 1}
		}
		for range d.Below(d.Len()+1, "number of destinations") {
			e := edge{r, d.Below(n, "rank")}
			declared[e] = [2]int{declared[e][0] + 1, declared[e][1]}
		}
		if err := d.End(); err != nil {
			return mpiErrorf(op, ClassOther, "neighbours of rank %d: %v", r, err)
		}
	}
	maps.DeleteFunc(declared, func(_ edge, n [2]int) bool { return n[0] == n[1] })
	if len(declared) == 0 {
		return nil
	}
	e := slices.MinFunc(slices.Collect(maps.Keys(declared)), func(a, b edge) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
	})
	return mpiErrorf(op, ClassRank, "rank %d has rank %d %d times as a destination, and rank %d has rank %d %d times as a source, expected the same number",
		e.from, e.to, declared[e][0], e.to, e.from, declared[e][1])
}

// A Neighborhood is a communicator whose ranks have neighbours, a *Graph or a *Cart. In a Cart
// the sources are the destinations: for each dimension the rank before and the rank after,
// ProcNull beyond a border. Parts of buffers that belong to ProcNull are not touched.
type Neighborhood interface{ neighborhood() *neighborhood }

// neighborhood has the neighbours of this rank.
type neighborhood struct {
	comm     *comm
	from, to []int // ranks that it receives from, and sends to
	order    []int // order of messages to the same rank: see collective.Neighbors
}

// NeighborAllgather sends send to all neighbours, and receives what those send as the parts of
// recv, in the order of sources (MPI_Ineighbor_allgather). All ranks send as much. It is
// collective.
func NeighborAllgather[T any](g Neighborhood, send, recv []T) *future.Future[struct{}] {
	return exchange[T](g, call{Kind: signature.NeighborAllgather, Count: len(send)}, func(n *neighborhood, r *collectiveRun) (_, _ [][]byte) {
		r.length("recv", len(recv), len(n.from)*len(send))
		return copies(send, len(n.to)), element.EqualParts(recv, len(n.from))
	})
}

// NeighborAllgatherv is NeighborAllgather of counts[i] elements from the i-th source
// (MPI_Ineighbor_allgatherv).
func NeighborAllgatherv[T any](g Neighborhood, send, recv []T, counts []int) *future.Future[struct{}] {
	return exchange[T](g, call{Kind: signature.NeighborAllgatherv}, func(n *neighborhood, r *collectiveRun) (_, _ [][]byte) {
		return copies(send, len(n.to)), parted(r, "recv", recv, counts, n.from)
	})
}

// NeighborAlltoall sends the i-th part of send to the i-th destination, and receives the i-th part
// of recv from the i-th source (MPI_Ineighbor_alltoall). All parts have the same length.
func NeighborAlltoall[T any](g Neighborhood, send, recv []T) *future.Future[struct{}] {
	return exchange[T](g, call{Kind: signature.NeighborAlltoall}, func(n *neighborhood, r *collectiveRun) (_, _ [][]byte) {
		r.that(len(send)%max(len(n.to), 1) == 0, ClassCount, "send has %d elements, expected a multiple of the %d destinations", len(send), len(n.to))
		r.that(len(recv)%max(len(n.from), 1) == 0, ClassCount, "recv has %d elements, expected a multiple of the %d sources", len(recv), len(n.from))
		return element.EqualParts(send, len(n.to)), element.EqualParts(recv, len(n.from))
	})
}

// NeighborAlltoallv is NeighborAlltoall of sendCounts[i] elements to the i-th destination and
// recvCounts[i] from the i-th source (MPI_Ineighbor_alltoallv).
func NeighborAlltoallv[T any](g Neighborhood, send []T, sendCounts []int, recv []T, recvCounts []int) *future.Future[struct{}] {
	return exchange[T](g, call{Kind: signature.NeighborAlltoallv}, func(n *neighborhood, r *collectiveRun) (_, _ [][]byte) {
		return parted(r, "send", send, sendCounts, n.to), parted(r, "recv", recv, recvCounts, n.from)
	})
}

// parted returns the parts of a buffer for the neighbours, or nil if counts are bad.
func parted[T any](r *collectiveRun, what string, buf []T, counts, neighbours []int) [][]byte {
	if r.countsOf(what, counts, len(buf), len(neighbours), "neighbour"); r.err != nil {
		return nil
	}
	return element.Parts(buf, counts)
}

// exchange runs an operation on elements of type T. split checks the arguments, and returns the
// parts of the buffers.
func exchange[T any](g Neighborhood, what call, split func(*neighborhood, *collectiveRun) (send, recv [][]byte)) *future.Future[struct{}] {
	if g == nil || g.neighborhood() == nil {
		return nowhere[struct{}](what.Kind.String())
	}
	n := g.neighborhood()
	return collectively[T](n.comm, what, func(r *collectiveRun) collective.Algorithm {
		send, recv := split(n, r)
		return &collective.Neighbors{To: n.to, From: n.from, Order: n.order, Send: send, Recv: recv}
	})
}

// copies returns a buffer n times.
func copies[T any](buf []T, n int) [][]byte { return slices.Repeat([][]byte{element.Bytes(buf)}, n) }
