package mpicx

import (
	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/collective"
)

// parts splits a buffer of T by counts.
func parts[T Scalar](buf []T, counts []int) [][]byte {
	split := make([][]byte, len(counts))
	for r, n := range counts {
		split[r] = bytesOf(buf[:n])
		buf = buf[n:]
	}
	return split
}

// Barrier is done once all ranks have begun it (MPI_Ibarrier). It does not say that it
// is done at all: a rank still in it may get the next error in its place (P7). What all
// are to have done together, such as to save a state to go back to, takes TryAll: see
// its example.
func (c *Comm) Barrier() *future.Future[struct{}] {
	if c == nil {
		return nowhere[struct{}]("Barrier")
	}
	return c.run("Barrier", nil, c.barrier(), nil)
}

// Bcast copies buf of rank root into buf of all others, which are as long
// (MPI_Ibcast).
func Bcast[T Scalar](c *Comm, buf []T, root int) *future.Future[struct{}] {
	if c == nil {
		return nowhere[struct{}]("Bcast")
	}
	k := check{op: "Bcast"}
	k.root(root, c)
	return c.run("Bcast", k.err, &collective.Bcast{Buf: bytesOf(buf), Root: root}, nil)
}

// Gather brings send of all ranks, as long at each, to recv of rank root, by rank
// (MPI_Igather). Elsewhere recv is not used.
func Gather[T Scalar](c *Comm, send, recv []T, root int) *future.Future[struct{}] {
	if c == nil {
		return nowhere[struct{}]("Gather")
	}
	k := check{op: "Gather"}
	k.root(root, c)
	if c.Rank() == root {
		k.length("recv", len(recv), c.Size()*len(send))
	}
	if len(send)*sizeOf[T]() <= treeLimit {
		return c.run("Gather", k.err, &collective.Gather{Send: bytesOf(send), Recv: bytesOf(recv), Root: root}, nil)
	}
	var a collective.Linear
	if k.err == nil {
		a.Send = toOne(c, root, bytesOf(send))
		if c.Rank() == root {
			a.Recv = parts(recv, equal(c, len(send)))
		}
	}
	return c.run("Gather", k.err, &a, nil)
}

// treeLimit is the length in bytes of a rank's part beyond which Gather and
// Scatter send it directly: a tree would copy it once a level.
const treeLimit = 4096

// toOne returns parts of which only that of rank r is not nil.
func toOne(c *Comm, r int, part []byte) [][]byte {
	split := make([][]byte, c.Size())
	split[r] = part
	return split
}

func equal(c *Comm, n int) []int {
	counts := make([]int, c.Size())
	for i := range counts {
		counts[i] = n
	}
	return counts
}

// Gatherv is Gather of counts[r] elements from each rank r (MPI_Igatherv). Only
// the root needs counts and recv.
func Gatherv[T Scalar](c *Comm, send, recv []T, counts []int, root int) *future.Future[struct{}] {
	if c == nil {
		return nowhere[struct{}]("Gatherv")
	}
	k := check{op: "Gatherv"}
	k.root(root, c)
	var a collective.Linear
	if k.err == nil && c.Rank() == root {
		k.counts("recv", counts, len(recv), c)
		if k.err == nil {
			a.Recv = parts(recv, counts)
		}
	}
	if k.err == nil {
		a.Send = toOne(c, root, bytesOf(send))
	}
	return c.run("Gatherv", k.err, &a, nil)
}

// Scatter brings the parts of send of rank root, as long for each, to recv of all
// ranks, by rank (MPI_Iscatter). Elsewhere send is not used.
func Scatter[T Scalar](c *Comm, send, recv []T, root int) *future.Future[struct{}] {
	if c == nil {
		return nowhere[struct{}]("Scatter")
	}
	k := check{op: "Scatter"}
	k.root(root, c)
	if c.Rank() == root {
		k.length("send", len(send), c.Size()*len(recv))
	}
	if len(recv)*sizeOf[T]() <= treeLimit {
		return c.run("Scatter", k.err, &collective.Scatter{Send: bytesOf(send), Recv: bytesOf(recv), Root: root}, nil)
	}
	var a collective.Linear
	if k.err == nil {
		a.Recv = toOne(c, root, bytesOf(recv))
		if c.Rank() == root {
			a.Send = parts(send, equal(c, len(recv)))
		}
	}
	return c.run("Scatter", k.err, &a, nil)
}

// Scatterv is Scatter of counts[r] elements to each rank r (MPI_Iscatterv). Only
// the root needs send and counts.
func Scatterv[T Scalar](c *Comm, send []T, counts []int, recv []T, root int) *future.Future[struct{}] {
	if c == nil {
		return nowhere[struct{}]("Scatterv")
	}
	k := check{op: "Scatterv"}
	k.root(root, c)
	var a collective.Linear
	if k.err == nil && c.Rank() == root {
		k.counts("send", counts, len(send), c)
		if k.err == nil {
			a.Send = parts(send, counts)
		}
	}
	if k.err == nil {
		a.Recv = toOne(c, root, bytesOf(recv))
	}
	return c.run("Scatterv", k.err, &a, nil)
}

// Allgather is Gather that brings the parts to every rank (MPI_Iallgather).
func Allgather[T Scalar](c *Comm, send, recv []T) *future.Future[struct{}] {
	if c == nil {
		return nowhere[struct{}]("Allgather")
	}
	k := check{op: "Allgather"}
	k.length("recv", len(recv), c.Size()*len(send))
	a := &collective.Allgather{Gather: collective.Gather{Send: bytesOf(send), Recv: bytesOf(recv)}}
	return c.run("Allgather", k.err, a, nil)
}

// Allgatherv is Allgather of counts[r] elements from each rank r
// (MPI_Iallgatherv). All ranks give the same counts.
func Allgatherv[T Scalar](c *Comm, send, recv []T, counts []int) *future.Future[struct{}] {
	if c == nil {
		return nowhere[struct{}]("Allgatherv")
	}
	k := check{op: "Allgatherv"}
	k.counts("recv", counts, len(recv), c)
	a := &collective.Allgatherv{Send: bytesOf(send), Recv: bytesOf(recv), At: make([]int, 1, len(counts)+1)}
	for r, n := range counts {
		a.At = append(a.At, a.At[r]+n*sizeOf[T]())
	}
	if k.err == nil {
		k.length("send", len(send), counts[c.Rank()])
	}
	return c.run("Allgatherv", k.err, a, nil)
}

// Alltoall sends the r-th part of send to rank r, as long for each, and receives
// rank r's as the r-th part of recv (MPI_Ialltoall).
func Alltoall[T Scalar](c *Comm, send, recv []T) *future.Future[struct{}] {
	if c == nil {
		return nowhere[struct{}]("Alltoall")
	}
	k := check{op: "Alltoall"}
	k.length("recv", len(recv), len(send))
	k.that(len(send)%c.Size() == 0, ClassCount, "send has %d elements, expected a multiple of the %d ranks", len(send), c.Size())
	if k.err != nil {
		return c.run("Alltoall", k.err, nil, nil)
	}
	counts := equal(c, len(send)/c.Size())
	return c.run("Alltoall", nil, &collective.Linear{Send: parts(send, counts), Recv: parts(recv, counts)}, nil)
}

// Alltoallv is Alltoall of sendCounts[r] elements to, and recvCounts[r] from,
// each rank r (MPI_Ialltoallv).
func Alltoallv[T Scalar](c *Comm, send []T, sendCounts []int, recv []T, recvCounts []int) *future.Future[struct{}] {
	if c == nil {
		return nowhere[struct{}]("Alltoallv")
	}
	k := check{op: "Alltoallv"}
	k.counts("send", sendCounts, len(send), c)
	k.counts("recv", recvCounts, len(recv), c)
	if k.err != nil {
		return c.run("Alltoallv", k.err, nil, nil)
	}
	return c.run("Alltoallv", nil, &collective.Linear{Send: parts(send, sendCounts), Recv: parts(recv, recvCounts)}, nil)
}
