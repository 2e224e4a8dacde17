package mpicx

import (
	"slices"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/internal/signature"
)

// A Neighborhood is a communicator whose ranks have neighbours, a *Graph or a *Cart. In a Cart
// the sources are the destinations: for each dimension the rank before and the rank after,
// ProcNull beyond a border. Parts of buffers that belong to ProcNull are not touched.
type Neighborhood interface{ neighborhood() *neighborhood }

// neighborhood has the neighbours of this rank.
type neighborhood struct {
	comm     *Comm
	from, to []int // ranks that it receives from, and sends to
	order    []int // order of messages to the same rank: see collective.Neighbors
}

// NeighborAllgather sends send to all neighbours, and receives what those send as the parts of
// recv, in the order of sources (MPI_Ineighbor_allgather). All ranks send as much. It is
// collective.
func NeighborAllgather[T any](g Neighborhood, send, recv []T) *future.Future[struct{}] {
	n, k := neighborsOf[T](g, "NeighborAllgather")
	if n == nil {
		return nowhere[struct{}](k.op)
	}
	k.length("recv", len(recv), len(n.from)*len(send))
	return n.exchange(call{Kind: signature.NeighborAllgather, Of: elementOf[T](), Count: len(send)}, &k,
		func() (_, _ [][]byte) { return copies(send, len(n.to)), equalParts(recv, len(n.from)) })
}

// NeighborAllgatherv is NeighborAllgather of counts[i] elements from the i-th source
// (MPI_Ineighbor_allgatherv).
func NeighborAllgatherv[T any](g Neighborhood, send, recv []T, counts []int) *future.Future[struct{}] {
	n, k := neighborsOf[T](g, "NeighborAllgatherv")
	if n == nil {
		return nowhere[struct{}](k.op)
	}
	k.countsOf("recv", counts, len(recv), len(n.from), "neighbour")
	return n.exchange(call{Kind: signature.NeighborAllgatherv, Of: elementOf[T]()}, &k,
		func() (_, _ [][]byte) { return copies(send, len(n.to)), parts(recv, counts) })
}

// NeighborAlltoall sends the i-th part of send to the i-th destination, and receives the i-th part of
// recv from the i-th source (MPI_Ineighbor_alltoall). All parts have the same length.
func NeighborAlltoall[T any](g Neighborhood, send, recv []T) *future.Future[struct{}] {
	n, k := neighborsOf[T](g, "NeighborAlltoall")
	if n == nil {
		return nowhere[struct{}](k.op)
	}
	k.that(len(send)%max(len(n.to), 1) == 0, ClassCount, "send has %d elements, expected a multiple of the %d destinations", len(send), len(n.to))
	k.that(len(recv)%max(len(n.from), 1) == 0, ClassCount, "recv has %d elements, expected a multiple of the %d sources", len(recv), len(n.from))
	return n.exchange(call{Kind: signature.NeighborAlltoall, Of: elementOf[T]()}, &k,
		func() (_, _ [][]byte) { return equalParts(send, len(n.to)), equalParts(recv, len(n.from)) })
}

// NeighborAlltoallv is NeighborAlltoall of sendCounts[i] elements to the i-th destination and
// recvCounts[i] from the i-th source (MPI_Ineighbor_alltoallv).
func NeighborAlltoallv[T any](g Neighborhood, send []T, sendCounts []int, recv []T, recvCounts []int) *future.Future[struct{}] {
	n, k := neighborsOf[T](g, "NeighborAlltoallv")
	if n == nil {
		return nowhere[struct{}](k.op)
	}
	k.countsOf("send", sendCounts, len(send), len(n.to), "neighbour")
	k.countsOf("recv", recvCounts, len(recv), len(n.from), "neighbour")
	return n.exchange(call{Kind: signature.NeighborAlltoallv, Of: elementOf[T]()}, &k,
		func() (_, _ [][]byte) { return parts(send, sendCounts), parts(recv, recvCounts) })
}

// neighborsOf returns the neighbours for op, or nil if there is no communicator.
func neighborsOf[T any](g Neighborhood, op string) (*neighborhood, check) {
	k := checkOf[T](op)
	if g == nil {
		return nil, k
	}
	return g.neighborhood(), k
}

// exchange runs an operation. It calls split for the parts after the arguments are checked.
func (n *neighborhood) exchange(what call, k *check, split func() (send, recv [][]byte)) *future.Future[struct{}] {
	if k.err != nil {
		return n.comm.run(what, k.err, nil, nil)
	}
	a := &collective.Neighbors{To: n.to, From: n.from, Order: n.order}
	a.Send, a.Recv = split()
	return n.comm.run(what, nil, a, nil)
}

// copies returns a buffer n times.
func copies[T any](buf []T, n int) [][]byte { return slices.Repeat([][]byte{bytesOf(buf)}, n) }

// equalParts splits a buffer into n parts.
func equalParts[T any](buf []T, n int) [][]byte {
	split := make([][]byte, n)
	for i := range split {
		length := len(buf) / n
		split[i] = bytesOf(buf[i*length:][:length])
	}
	return split
}
