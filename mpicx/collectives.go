package mpicx

import (
	"slices"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/internal/element"
	"github.com/mpicx/go-mpicx/internal/signature"
)

// partsOf says where the parts of a buffer of T begin, by counts.
func partsOf[T any](k *collective.Kept, counts []int) collective.Parts {
	parts := k.Parts(len(counts))
	for r, n := range counts {
		parts[r+1] = parts[r] + n*element.Size[T]()
	}
	return parts
}

// Barrier completes once all ranks have begun it (MPI_Ibarrier). That it completed here
// does not mean that it completes everywhere: another rank may get the next error in its
// place (P7). Use TryAll where all ranks must succeed together, for example to save a
// state to go back to: see its example.
func (c *Comm) Barrier() *future.Future[struct{}] {
	if c == nil {
		return nowhere[struct{}]("Barrier")
	}
	r := c.newRun()
	return r.start(call{Kind: signature.Barrier}.Word(), nil, c.chooser.Barrier(&r.kept), nil)
}

// Bcast copies buf of rank root into buf of all other ranks (MPI_Ibcast). All buffers
// have the same length.
func Bcast[T any](c *Comm, buf []T, root int) *future.Future[struct{}] {
	if c == nil {
		return nowhere[struct{}]("Bcast")
	}
	k := checkOf[T]("Bcast")
	k.root(root, c)
	r := c.newRun()
	return r.start(call{Kind: signature.Bcast, Root: root, Of: element.TypeOf[T]().Element, Count: len(buf)}.Word(), k.err, c.chooser.Bcast(&r.kept, element.Bytes(buf), root), nil)
}

// Gather collects send of all ranks in recv of rank root, in rank order (MPI_Igather).
// All send buffers have the same length, and recv is Size times as long. At other ranks
// recv is not used.
func Gather[T any](c *Comm, send, recv []T, root int) *future.Future[struct{}] {
	if c == nil {
		return nowhere[struct{}]("Gather")
	}
	what := call{Kind: signature.Gather, Root: root, Of: element.TypeOf[T]().Element, Count: len(send)}
	k := checkOf[T]("Gather")
	k.root(root, c)
	if c.Rank() == root {
		k.length("recv", len(recv), c.Size()*len(send))
		inPlace(&k, "send", send, "recv", recv, root*len(send))
	}
	r := c.newRun()
	return r.start(what.Word(), k.err, c.chooser.Gather(&r.kept, element.Bytes(send), element.Bytes(recv), root), nil)
}

// before returns the number of elements of the ranks before r, or 0 if counts are bad.
func before(counts []int, r int) (first int) {
	for _, n := range counts[:min(r, len(counts))] {
		first += n
	}
	return first
}

// Gatherv is Gather of counts[r] elements from each rank r (MPI_Igatherv). Counts and
// recv are used at the root only.
func Gatherv[T any](c *Comm, send, recv []T, counts []int, root int) *future.Future[struct{}] {
	return gatherv(c, signature.Gatherv, send, recv, counts, root)
}

// gatherv is Gatherv, or Scatterv, its inverse, between the root's buffer, whole, and a part at
// each rank.
func gatherv[T any](c *Comm, kind signature.Kind, part, whole []T, counts []int, root int) *future.Future[struct{}] {
	if c == nil {
		return nowhere[struct{}](kind.String())
	}
	var a collective.Linear
	partName, wholeName, mine, all := "send", "recv", &a.Send, &a.Recv
	if kind == signature.Scatterv {
		partName, wholeName, mine, all = wholeName, partName, all, mine
	}
	k := checkOf[T](kind.String())
	k.root(root, c)
	if k.err == nil && c.rank == root {
		k.counts(wholeName, counts, len(whole), c)
		inPlace(&k, partName, part, wholeName, whole, before(counts, root))
		if k.err == nil {
			*all = element.Parts(whole, counts)
		}
	}
	if k.err == nil {
		*mine = make([][]byte, c.size)
		(*mine)[root] = element.Bytes(part)
	}
	return c.run(call{Kind: kind, Root: root, Of: element.TypeOf[T]().Element}, k.err, &a, nil)
}

// Scatter distributes send of rank root: recv of rank r gets its r-th part (MPI_Iscatter).
// All recv buffers have the same length, and send is Size times as long. At other ranks
// send is not used.
func Scatter[T any](c *Comm, send, recv []T, root int) *future.Future[struct{}] {
	if c == nil {
		return nowhere[struct{}]("Scatter")
	}
	what := call{Kind: signature.Scatter, Root: root, Of: element.TypeOf[T]().Element, Count: len(recv)}
	k := checkOf[T]("Scatter")
	k.root(root, c)
	if c.Rank() == root {
		k.length("send", len(send), c.Size()*len(recv))
		inPlace(&k, "recv", recv, "send", send, root*len(recv))
	}
	r := c.newRun()
	return r.start(what.Word(), k.err, c.chooser.Scatter(&r.kept, element.Bytes(send), element.Bytes(recv), root), nil)
}

// Scatterv is Scatter of counts[r] elements to each rank r (MPI_Iscatterv). Send and
// counts are used at the root only.
func Scatterv[T any](c *Comm, send []T, counts []int, recv []T, root int) *future.Future[struct{}] {
	return gatherv(c, signature.Scatterv, recv, send, counts, root)
}

// Allgather is Gather with the result at every rank (MPI_Iallgather).
func Allgather[T any](c *Comm, send, recv []T) *future.Future[struct{}] {
	if c == nil {
		return nowhere[struct{}]("Allgather")
	}
	k := checkOf[T]("Allgather")
	k.length("recv", len(recv), c.Size()*len(send))
	inPlace(&k, "send", send, "recv", recv, c.rank*len(send))
	r := c.newRun()
	return r.start(call{Kind: signature.Allgather, Of: element.TypeOf[T]().Element, Count: len(send)}.Word(), k.err, c.chooser.Allgather(&r.kept, element.Bytes(send), element.Bytes(recv)), nil)
}

// Allgatherv is Allgather of counts[r] elements from each rank r
// (MPI_Iallgatherv). Counts are the same at all ranks.
func Allgatherv[T any](c *Comm, send, recv []T, counts []int) *future.Future[struct{}] {
	if c == nil {
		return nowhere[struct{}]("Allgatherv")
	}
	k := checkOf[T]("Allgatherv")
	k.counts("recv", counts, len(recv), c)
	if k.err == nil {
		k.length("send", len(send), counts[c.Rank()])
		inPlace(&k, "send", send, "recv", recv, before(counts, c.rank))
	}
	what := call{Kind: signature.Allgatherv, Of: element.TypeOf[T]().Element}
	if k.err != nil {
		return c.run(what, k.err, nil, nil)
	}
	r := c.newRun()
	parts := partsOf[T](&r.kept, counts)
	what.Root = parts.Digest()
	return r.start(what.Word(), nil, c.chooser.Allgatherv(&r.kept, element.Bytes(send), element.Bytes(recv), parts), nil)
}

// Alltoall sends the r-th part of send to each rank r, and receives the part from rank r
// as the r-th part of recv (MPI_Ialltoall). All parts have the same length. In place, send is
// copied first.
func Alltoall[T any](c *Comm, send, recv []T) *future.Future[struct{}] {
	if c == nil {
		return nowhere[struct{}]("Alltoall")
	}
	what := call{Kind: signature.Alltoall, Of: element.TypeOf[T]().Element, Count: len(send)}
	k := checkOf[T]("Alltoall")
	k.length("recv", len(recv), len(send))
	if len(send)%c.size != 0 {
		k.that(false, ClassCount, "send has %d elements, expected a multiple of the %d ranks", len(send), c.size)
	}
	shared := same(&k, send, recv)
	if k.err != nil {
		return c.run(what, k.err, nil, nil)
	}
	if shared {
		send = slices.Clone(send)
	}
	r := c.newRun()
	return r.start(what.Word(), nil, c.chooser.Alltoall(&r.kept, element.Bytes(send), element.Bytes(recv)), nil)
}

// Alltoallv is Alltoall of sendCounts[r] elements to each rank r and recvCounts[r]
// elements from it (MPI_Ialltoallv). In place, send is copied first.
func Alltoallv[T any](c *Comm, send []T, sendCounts []int, recv []T, recvCounts []int) *future.Future[struct{}] {
	if c == nil {
		return nowhere[struct{}]("Alltoallv")
	}
	what := call{Kind: signature.Alltoallv, Of: element.TypeOf[T]().Element}
	k := checkOf[T]("Alltoallv")
	k.counts("send", sendCounts, len(send), c)
	k.counts("recv", recvCounts, len(recv), c)
	shared := same(&k, send, recv)
	if k.err != nil {
		return c.run(what, k.err, nil, nil)
	}
	if shared {
		send = slices.Clone(send)
	}
	return c.run(what, nil, &collective.Linear{Send: element.Parts(send, sendCounts), Recv: element.Parts(recv, recvCounts)}, nil)
}
