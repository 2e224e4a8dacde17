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

// Barrier completes once all ranks have begun it (MPI_Ibarrier). That it completed here
// does not mean that it completes everywhere: another rank may get the next error in its
// place (P7). Use TryAll where all ranks must succeed together, for example to save a
// state to go back to: see its example.
func (c *Comm) Barrier() *future.Future[struct{}] {
	if c == nil {
		return nowhere[struct{}]("Barrier")
	}
	return c.run("Barrier", nil, c.barrier(), nil)
}

// Bcast copies buf of rank root into buf of all other ranks (MPI_Ibcast). All buffers
// have the same length.
func Bcast[T Scalar](c *Comm, buf []T, root int) *future.Future[struct{}] {
	if c == nil {
		return nowhere[struct{}]("Bcast")
	}
	k := check{op: "Bcast"}
	k.root(root, c)
	return c.run("Bcast", k.err, &collective.Bcast{Buf: bytesOf(buf), Root: root}, nil)
}

// Gather collects send of all ranks in recv of rank root, in rank order (MPI_Igather).
// All send buffers have the same length, and recv is Size times as long. At other ranks
// recv is not used.
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

// treeLimit is the largest part of a rank, in bytes, that Gather and Scatter send along a
// tree. A tree copies it once a level, so larger parts go directly.
const treeLimit = 4096

// toOne returns parts that are nil but for that of rank r.
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

// Gatherv is Gather of counts[r] elements from each rank r (MPI_Igatherv). Counts and
// recv are used at the root only.
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

// Scatter distributes send of rank root: recv of rank r gets its r-th part (MPI_Iscatter).
// All recv buffers have the same length, and send is Size times as long. At other ranks
// send is not used.
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

// Scatterv is Scatter of counts[r] elements to each rank r (MPI_Iscatterv). Send and
// counts are used at the root only.
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

// Allgather is Gather with the result at every rank (MPI_Iallgather).
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
// (MPI_Iallgatherv). Counts are the same at all ranks.
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

// Alltoall sends the r-th part of send to each rank r, and receives the part from rank r
// as the r-th part of recv (MPI_Ialltoall). All parts have the same length.
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

// Alltoallv is Alltoall of sendCounts[r] elements to each rank r and recvCounts[r]
// elements from it (MPI_Ialltoallv).
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
