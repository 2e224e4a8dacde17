package mpicx

import (
	"slices"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/internal/element"
	"github.com/mpicx/go-mpicx/internal/signature"
)

// partsOf says where the parts of a buffer of T begin, by counts, which are the same at all ranks.
func partsOf[T any](r *collectiveRun, counts []int) collective.Parts {
	parts := r.kept.Parts(len(counts))
	for rank, n := range counts {
		parts[rank+1] = parts[rank] + n*element.Size[T]()
	}
	r.what.Root = parts.Digest()
	return parts
}

// Barrier completes once all ranks have begun it (MPI_Ibarrier). That it completed here
// does not mean that it completes everywhere: another rank may get the next error in its
// place (P7). Use TryAll where all ranks must succeed together, for example to save a
// state to go back to: see its example.
func (c *Comm) Barrier() *future.Future[struct{}] {
	return c.of().start(call{Kind: signature.Barrier}, nil, func(r *collectiveRun) collective.Algorithm {
		return c.chooser.Barrier(&r.kept)
	})
}

// Bcast copies buf of rank root into buf of all other ranks (MPI_Ibcast). All buffers
// have the same length.
func Bcast[T any](c *Comm, buf []T, root int) *future.Future[struct{}] {
	return collectively[T](c.of(), call{Kind: signature.Bcast, Root: root, Count: len(buf)}, func(r *collectiveRun) collective.Algorithm {
		r.root(root, c.of())
		return c.chooser.Bcast(&r.kept, element.Bytes(buf), root)
	})
}

// Gather collects send of all ranks in recv of rank root, in rank order (MPI_Igather).
// All send buffers have the same length, and recv is Size times as long. At other ranks
// recv is not used.
func Gather[T any](c *Comm, send, recv []T, root int) *future.Future[struct{}] {
	return collectively[T](c.of(), call{Kind: signature.Gather, Root: root, Count: len(send)}, func(r *collectiveRun) collective.Algorithm {
		r.root(root, c.of())
		if c.rank == root {
			r.length("recv", len(recv), c.size*len(send))
			inPlace(&r.check, "send", send, "recv", recv, root*len(send))
		}
		return c.chooser.Gather(&r.kept, element.Bytes(send), element.Bytes(recv), root)
	})
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
	return gatherv(c.of(), signature.Gatherv, send, recv, counts, root)
}

// gatherv is Gatherv, or Scatterv, its inverse, between the root's buffer, whole, and a part at
// each rank.
func gatherv[T any](c *comm, kind signature.Kind, part, whole []T, counts []int, root int) *future.Future[struct{}] {
	return collectively[T](c, call{Kind: kind, Root: root}, func(r *collectiveRun) collective.Algorithm {
		a := new(collective.Linear)
		partName, wholeName, mine, all := "send", "recv", &a.Send, &a.Recv
		if kind == signature.Scatterv {
			partName, wholeName, mine, all = wholeName, partName, all, mine
		}
		r.root(root, c)
		if r.err == nil && c.rank == root {
			r.counts(wholeName, counts, len(whole), c)
			inPlace(&r.check, partName, part, wholeName, whole, before(counts, root))
		}
		if r.err != nil {
			return nil
		}
		if c.rank == root {
			*all = element.Parts(whole, counts)
		}
		*mine = make([][]byte, c.size)
		(*mine)[root] = element.Bytes(part)
		return a
	})
}

// Scatter distributes send of rank root: recv of rank r gets its r-th part (MPI_Iscatter).
// All recv buffers have the same length, and send is Size times as long. At other ranks
// send is not used.
func Scatter[T any](c *Comm, send, recv []T, root int) *future.Future[struct{}] {
	return collectively[T](c.of(), call{Kind: signature.Scatter, Root: root, Count: len(recv)}, func(r *collectiveRun) collective.Algorithm {
		r.root(root, c.of())
		if c.rank == root {
			r.length("send", len(send), c.size*len(recv))
			inPlace(&r.check, "recv", recv, "send", send, root*len(recv))
		}
		return c.chooser.Scatter(&r.kept, element.Bytes(send), element.Bytes(recv), root)
	})
}

// Scatterv is Scatter of counts[r] elements to each rank r (MPI_Iscatterv). Send and
// counts are used at the root only.
func Scatterv[T any](c *Comm, send []T, counts []int, recv []T, root int) *future.Future[struct{}] {
	return gatherv(c.of(), signature.Scatterv, recv, send, counts, root)
}

// Allgather is Gather with the result at every rank (MPI_Iallgather).
func Allgather[T any](c *Comm, send, recv []T) *future.Future[struct{}] {
	return collectively[T](c.of(), call{Kind: signature.Allgather, Count: len(send)}, func(r *collectiveRun) collective.Algorithm {
		r.length("recv", len(recv), c.size*len(send))
		inPlace(&r.check, "send", send, "recv", recv, c.rank*len(send))
		return c.chooser.Allgather(&r.kept, element.Bytes(send), element.Bytes(recv))
	})
}

// Allgatherv is Allgather of counts[r] elements from each rank r
// (MPI_Iallgatherv). Counts are the same at all ranks.
func Allgatherv[T any](c *Comm, send, recv []T, counts []int) *future.Future[struct{}] {
	return collectively[T](c.of(), call{Kind: signature.Allgatherv}, func(r *collectiveRun) collective.Algorithm {
		r.counts("recv", counts, len(recv), c.of())
		if r.err == nil {
			r.length("send", len(send), counts[c.rank])
			inPlace(&r.check, "send", send, "recv", recv, before(counts, c.rank))
		}
		if r.err != nil {
			return nil
		}
		return c.chooser.Allgatherv(&r.kept, element.Bytes(send), element.Bytes(recv), partsOf[T](r, counts))
	})
}

// Alltoall sends the r-th part of send to each rank r, and receives the part from rank r
// as the r-th part of recv (MPI_Ialltoall). All parts have the same length. In place, send is
// copied first.
func Alltoall[T any](c *Comm, send, recv []T) *future.Future[struct{}] {
	return collectively[T](c.of(), call{Kind: signature.Alltoall, Count: len(send)}, func(r *collectiveRun) collective.Algorithm {
		r.length("recv", len(recv), len(send))
		if len(send)%c.size != 0 {
			r.that(false, ClassCount, "send has %d elements, expected a multiple of the %d ranks", len(send), c.size)
		}
		send := copied(r, send, recv)
		if r.err != nil {
			return nil
		}
		return c.chooser.Alltoall(&r.kept, element.Bytes(send), element.Bytes(recv))
	})
}

// copied returns send, or a copy of it if recv is the same buffer.
func copied[T any](r *collectiveRun, send, recv []T) []T {
	if same(&r.check, send, recv) && r.err == nil {
		return slices.Clone(send)
	}
	return send
}

// Alltoallv is Alltoall of sendCounts[r] elements to each rank r and recvCounts[r]
// elements from it (MPI_Ialltoallv). In place, send is copied first.
func Alltoallv[T any](c *Comm, send []T, sendCounts []int, recv []T, recvCounts []int) *future.Future[struct{}] {
	return collectively[T](c.of(), call{Kind: signature.Alltoallv}, func(r *collectiveRun) collective.Algorithm {
		r.counts("send", sendCounts, len(send), c.of())
		r.counts("recv", recvCounts, len(recv), c.of())
		send := copied(r, send, recv)
		if r.err != nil {
			return nil
		}
		return &collective.Linear{Send: element.Parts(send, sendCounts), Recv: element.Parts(recv, recvCounts)}
	})
}
