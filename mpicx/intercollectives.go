package mpicx

import (
	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/internal/signature"
)

// Collective operations of an Intercomm go from one group to the other. All ranks of both groups call them.
// A root is named by its rank in Union: the ranks of its group give Own of its rank, the others
// Remote.

// Barrier completes once all ranks of both groups have begun it.
func (ic *Intercomm) Barrier() *future.Future[struct{}] { return ic.Union().Barrier() }

// InterBcast copies buf of rank root of Union into buf of all ranks of the group that root is
// not in. The other ranks of root's own group call it too; their buffers are not used.
func InterBcast[T any](ic *Intercomm, buf []T, root int) *future.Future[struct{}] {
	if ic == nil {
		return nowhere[struct{}]("InterBcast")
	}
	k := checkOf[T]("InterBcast")
	k.root(root, ic.union)
	a := &collective.Linear{Send: make([][]byte, ic.union.size), Recv: make([][]byte, ic.union.size)}
	switch {
	case k.err != nil:
	case root == ic.union.rank:
		for r := range ic.remote {
			a.Send[ic.other+r] = bytesOf(buf)
		}
	case !ic.isOwn(root):
		a.Recv[root] = bytesOf(buf)
	}
	return ic.union.run(call{Kind: signature.Bcast, Root: root, Of: elementOf[T](), Count: len(buf)}, k.err, a, nil)
}

// InterGather collects send of all ranks of the group that root is not in, in rank order, in
// recv of root, a rank of Union. These send buffers have the same length, and recv is that
// length times the number of ranks in their group.
func InterGather[T any](ic *Intercomm, send, recv []T, root int) *future.Future[struct{}] {
	if ic == nil {
		return nowhere[struct{}]("InterGather")
	}
	k := checkOf[T]("InterGather")
	k.root(root, ic.union)
	a := &collective.Linear{Send: make([][]byte, ic.union.size), Recv: make([][]byte, ic.union.size)}
	count := len(send)
	switch {
	case k.err != nil:
	case root == ic.union.rank:
		if count = ic.each(&k, "recv", len(recv)); k.err == nil {
			ic.fill(a.Recv, bytesOf(recv))
		}
	case !ic.isOwn(root):
		a.Send[root] = bytesOf(send)
	}
	return ic.union.run(call{Kind: signature.Gather, Root: root, Of: elementOf[T](), Count: count}, k.err, a, nil)
}

// InterAllreduce combines send of all ranks of the other group, element by element and in the
// order of ranks, into recv. All buffers have the same length.
func InterAllreduce[T Scalar](ic *Intercomm, send, recv []T, op Op) *future.Future[struct{}] {
	if ic == nil {
		return nowhere[struct{}]("InterAllreduce")
	}
	k := check{op: "InterAllreduce"}
	combine := opFor[T](op)
	defined[T](&k, combine, op)
	k.length("recv", len(recv), len(send))
	all := make([]T, ic.remote*len(send))
	a := &collective.Linear{Send: make([][]byte, ic.union.size), Recv: make([][]byte, ic.union.size)}
	ic.fill(a.Recv, bytesOf(all))
	for r := range ic.remote {
		a.Send[ic.other+r] = bytesOf(send)
	}
	return ic.union.run(reducing[T](signature.Allreduce, op, 0, len(send)), k.err, a, func() {
		for r := range ic.remote {
			if part := all[r*len(recv):][:len(recv)]; r == 0 {
				copy(recv, part)
			} else {
				combine(bytesOf(recv), bytesOf(recv), bytesOf(part))
			}
		}
		if truth := alone(ic.remote, op, recv); truth != nil {
			truth()
		}
	})
}

// InterAlltoall sends the r-th part of send to each rank r of the other group, and receives the
// part from rank r as the r-th part of recv. All parts in one direction have the same length.
func InterAlltoall[T any](ic *Intercomm, send, recv []T) *future.Future[struct{}] {
	if ic == nil {
		return nowhere[struct{}]("InterAlltoall")
	}
	k := checkOf[T]("InterAlltoall")
	count := ic.each(&k, "send", len(send)) + ic.each(&k, "recv", len(recv)) // the same in both groups
	a := &collective.Linear{Send: make([][]byte, ic.union.size), Recv: make([][]byte, ic.union.size)}
	if k.err == nil {
		ic.fill(a.Send, bytesOf(send))
		ic.fill(a.Recv, bytesOf(recv))
	}
	return ic.union.run(call{Kind: signature.Alltoall, Of: elementOf[T](), Count: count}, k.err, a, nil)
}

// isOwn says whether a rank of Union is in this rank's own group.
func (ic *Intercomm) isOwn(rank int) bool { return rank >= ic.own && rank < ic.own+ic.size }

// each returns the number of elements of a buffer for each rank of the other group.
func (ic *Intercomm) each(k *check, what string, n int) int {
	if ic.remote == 0 {
		return 0
	}
	k.that(n%ic.remote == 0, ClassCount, "%s has %d elements, expected a multiple of the %d ranks of the other group", what, n, ic.remote)
	return n / ic.remote
}

// fill divides a buffer among the ranks of the other group.
func (ic *Intercomm) fill(parts [][]byte, buf []byte) {
	for r := range ic.remote {
		n := len(buf) / ic.remote
		parts[ic.other+r] = buf[r*n:][:n:n]
	}
}
