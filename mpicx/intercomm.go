package mpicx

import (
	"context"
	"math/bits"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/internal/element"
	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// An Intercomm is a communicator of two groups, whose operations go from one group to the other
// (an inter-communicator of MPI). A rank has its number in its own group. CreateIntercomm makes
// it.
//
// It is built on a communicator of both groups, Union, which has the ranks of one group and
// then those of the other. Own and Remote return ranks of the groups as ranks of Union, and
// Split does the reverse. Errors of the Intercomm are errors of Union, and number ranks as
// Union does. Call Try, TryAll and Guard on Union.
type Intercomm struct {
	union        *Comm
	size, remote int // of the two groups
	own, other   int // the first ranks of both in union
}

// newIntercomm returns an Intercomm over union. isFirst says that this rank's group, of the given
// size, comes first there.
func newIntercomm(union *comm, size, remote int, isFirst bool) *Intercomm {
	if isFirst {
		return &Intercomm{union: union.handle(), size: size, remote: remote, other: size}
	}
	return &Intercomm{union: union.handle(), size: size, remote: remote, own: remote}
}

// Union is the communicator of both groups.
func (ic *Intercomm) Union() *Comm {
	if ic == nil {
		return nil
	}
	return ic.union
}

// mustExist panics if ic is nil, where no error can be returned.
func (ic *Intercomm) mustExist(call string) *Intercomm {
	ic.Union().mustExist(call)
	return ic
}

// Rank is this rank's number in its own group.
func (ic *Intercomm) Rank() int { return ic.mustExist("Rank").union.rank - ic.own }

// Size is the number of ranks of this rank's own group.
func (ic *Intercomm) Size() int { return ic.mustExist("Size").size }

// RemoteSize is the number of ranks of the other group (MPI_Comm_remote_size). It may be 0 after
// Shrink.
func (ic *Intercomm) RemoteSize() int { return ic.mustExist("RemoteSize").remote }

// Own returns the rank in Union of a rank of this rank's own group. [Intercomm.Remote] does so
// for the other group.
func (ic *Intercomm) Own(rank int) int { return translated(rank, ic.mustExist("Own").own) }

// Remote returns the rank in Union of a rank of the other group.
func (ic *Intercomm) Remote(rank int) int { return translated(rank, ic.mustExist("Remote").other) }

// translated returns rank+by, but AnySource and ProcNull unchanged.
func translated(rank, by int) int {
	if rank < 0 {
		return rank
	}
	return rank + by
}

// Split divides ranks of Union into those of this rank's own group and those of the other
// group, and returns them as ranks of these groups.
func (ic *Intercomm) Split(ranks []int) (own, remote []int) {
	ic.mustExist("Split")
	for _, r := range ranks {
		if ic.isOwn(r) {
			own = append(own, r-ic.own)
		} else {
			remote = append(remote, r-ic.other)
		}
	}
	return own, remote
}

// String returns the communicator's name.
func (ic *Intercomm) String() string { return ic.Union().String() }

// Err is Err of Union.
func (ic *Intercomm) Err() error { return ic.Union().Err() }

// Failed returns the ranks of both groups that this rank knows to be dead, each in the order in
// which it learned of them.
func (ic *Intercomm) Failed() (own, remote []int) { return ic.Split(ic.Union().Failed()) }

// Signal is Signal of Union: all ranks of both groups get the error.
func (ic *Intercomm) Signal(ctx context.Context, err error) error { return ic.Union().Signal(ctx, err) }

// Revoke ends all operations at both groups (MPI_Comm_revoke).
func (ic *Intercomm) Revoke(ctx context.Context) error { return ic.Union().Revoke(ctx) }

// Close ends the use of the Intercomm, and of Union.
func (ic *Intercomm) Close(ctx context.Context) error {
	if v := recover(); v != nil {
		defer ic.Release() // it sees the panic
		panic(v)
	}
	return ic.Union().Close(ctx)
}

// Release is [Comm.Release] of Union.
func (ic *Intercomm) Release() {
	v := recover()
	defer ic.Union().Release() // it sees the panic
	if v != nil {
		panic(v)
	}
}

// agreedBits is the number of bits of a flag of Intercomm.Agree.
const agreedBits = bits.UintSize / 2

// Agree completes at each group with the bitwise AND of the flags of the other group. Both
// values are decided together: all living ranks get theirs, or all get an error. Flag of a
// *ProcFailedError is the other group's value, too. A flag fits an int32 (an int16 where an int
// has 32 bits).
func (ic *Intercomm) Agree(flag int) *future.Future[int] {
	if ic == nil {
		return nowhere[int]("Agree")
	}
	const low = 1<<agreedBits - 1
	if signed(flag) != flag {
		return failed[int](ic.union.of(), mpiErrorf("Agree", ClassOther, "flag %d, expected one of %d bits", flag, agreedBits))
	}
	both := flag<<agreedBits | low // for the group with the higher ranks
	if ic.own == 0 {
		both = flag&low | ^low
	}
	return repair(ic.union.of(), errchan.Proposal{Call: errchan.Agree, Flag: both}, func(r *repairing[int], d *errchan.Decision) {
		of := *d
		if of.Flag = signed(d.Flag); ic.own == 0 {
			of.Flag = d.Flag >> agreedBits
		}
		agreedOn(r, &of)
	})
}

// signed returns the lower half of a flag, with its sign.
func signed(flag int) int { return flag << agreedBits >> agreedBits }

// Shrink makes an Intercomm of the living ranks of both groups, in their order
// (MPI_Comm_shrink). If all ranks of a group have died, RemoteSize at the other group is 0.
func (ic *Intercomm) Shrink() *future.Future[*Intercomm] {
	if ic == nil {
		return nowhere[*Intercomm]("Shrink")
	}
	return shrink(ic.union.of(), func(made *comm, dead []int) *Intercomm {
		own, remote := ic.Split(dead)
		return newIntercomm(made, ic.size-len(own), ic.remote-len(remote), ic.own == 0)
	})
}

// Merge makes a communicator of both groups, in which a group that passes high comes after one
// that does not (MPI_Intercomm_merge). All ranks of a group pass the same. If both groups pass
// the same, the order is Union's. It is collective.
func (ic *Intercomm) Merge(high bool) *future.Future[*Comm] {
	if ic == nil {
		return nowhere[*Comm]("Merge")
	}
	return splitAs(ic.union.of(), signature.Merge, errchan.Merge, choice{key: truth(high)}, nil, (*comm).handle)
}

// InterSend is Send to a rank of the other group.
func InterSend[T any](ic *Intercomm, buf []T, dest, tag int) *future.Future[Status] {
	if bad := ic.check("InterSend", dest, ProcNull); bad != nil {
		return failed[Status](ic.Union().of(), bad)
	}
	return Send(ic.union, buf, ic.Remote(dest), tag)
}

// InterRecv is Recv from a rank of the other group, or AnySource. Status.Source is its rank there.
func InterRecv[T any](ic *Intercomm, buf []T, source, tag int) *future.Future[Status] {
	const op = "InterRecv"
	of, bad := element.TypeOf[T](), ic.check(op, source, AnySource)
	if bad == nil {
		bad = mpiError(op, of.Unfit)
	}
	if bad != nil {
		return failed[Status](ic.Union().of(), bad)
	}
	o := new(typedReceive[Status])
	o.request.Buf, o.request.Signature = element.Bytes(buf), of.Signature
	return o.receive(ic.union.of(), op, ic.Remote(source), tag, func(r *transport.Request) (Status, error) {
		s, err := ic.union.status(op, r, of.Size)
		if s.Source >= 0 {
			s.Source -= ic.other
		}
		return s, err
	})
}

// isOwn says whether a rank of Union is in this rank's own group.
func (ic *Intercomm) isOwn(rank int) bool { return rank >= ic.own && rank < ic.own+ic.size }

// check returns the error of a call with a rank of the other group.
func (ic *Intercomm) check(op string, rank, nobody int) error {
	if ic == nil {
		return mpiErrorf(op, ClassComm, nilComm)
	}
	if rank < 0 && rank != nobody && rank != ProcNull || rank >= ic.remote {
		return mpiErrorf(op, ClassRank, "rank %d of the other group of %s, expected 0 to %d", rank, ic, ic.remote-1)
	}
	return nil
}

// Collective operations of an Intercomm go from one group to the other. All ranks of both groups
// call them. A root is named by its rank in Union: the ranks of its group give Own of its rank, the
// others Remote.

// Barrier completes once all ranks of both groups have begun it.
func (ic *Intercomm) Barrier() *future.Future[struct{}] { return ic.Union().Barrier() }

// InterBcast copies buf of rank root of Union into buf of all ranks of the group that root is
// not in. The other ranks of root's own group call it too; their buffers are not used.
func InterBcast[T any](ic *Intercomm, buf []T, root int) *future.Future[struct{}] {
	return between[T](ic, "InterBcast", call{Kind: signature.Bcast, Root: root, Count: len(buf)}, func(r *collectiveRun, send, recv [][]byte) {
		r.root(root, ic.union.of())
		switch {
		case r.err != nil:
		case root == ic.union.rank:
			for rank := range ic.remote {
				send[ic.other+rank] = element.Bytes(buf)
			}
		case !ic.isOwn(root):
			recv[root] = element.Bytes(buf)
		}
	})
}

// InterGather collects send of all ranks of the group that root is not in, in rank order, in
// recv of root, a rank of Union. These send buffers have the same length, and recv is that
// length times the number of ranks in their group.
func InterGather[T any](ic *Intercomm, send, recv []T, root int) *future.Future[struct{}] {
	return between[T](ic, "InterGather", call{Kind: signature.Gather, Root: root, Count: len(send)}, func(r *collectiveRun, out, in [][]byte) {
		r.root(root, ic.union.of())
		switch {
		case r.err != nil:
		case root == ic.union.rank:
			r.what.Count = counted[T](ic.spread(r, "recv", in, len(recv), element.Bytes(recv)))
		case !ic.isOwn(root):
			out[root] = element.Bytes(send)
		}
	})
}

// InterAllreduce combines send of all ranks of the other group, element by element and in the
// order of ranks, into recv. All buffers have the same length.
func InterAllreduce[T Scalar](ic *Intercomm, send, recv []T, op Op) *future.Future[struct{}] {
	return between[T](ic, "InterAllreduce", call{Kind: signature.Allreduce, Op: int(op), Count: len(send)}, func(r *collectiveRun, out, in [][]byte) {
		combine := predefined[T](op)
		defined[T](&r.check, combine)
		r.length("recv", len(recv), len(send))
		all := make([]T, ic.remote*len(send))
		ic.spread(r, "", in, len(all), element.Bytes(all))
		for rank := range ic.remote {
			out[ic.other+rank] = element.Bytes(send)
		}
		r.finish = func() {
			for rank := range ic.remote {
				if part := all[rank*len(recv):][:len(recv)]; rank == 0 {
					copy(recv, part)
				} else {
					combine.kernel(element.Bytes(recv), element.Bytes(recv), element.Bytes(part))
				}
			}
			if last := alone(ic.remote, op, recv); last != nil {
				last()
			}
		}
	})
}

// InterAlltoall sends the r-th part of send to each rank r of the other group, and receives the
// part from rank r as the r-th part of recv. All parts in one direction have the same length.
func InterAlltoall[T any](ic *Intercomm, send, recv []T) *future.Future[struct{}] {
	return between[T](ic, "InterAlltoall", call{Kind: signature.Alltoall}, func(r *collectiveRun, out, in [][]byte) {
		sent := ic.spread(r, "send", out, len(send), element.Bytes(send))
		received := ic.spread(r, "recv", in, len(recv), element.Bytes(recv))
		r.what.Count = counted[T](sent + received) // the same in both groups
	})
}

// between starts a collective operation of both groups, which is called op in errors of the
// arguments. prepare checks these, and says what is sent to each rank of Union, and received from
// it.
func between[T any](ic *Intercomm, op string, what call, prepare func(r *collectiveRun, send, recv [][]byte)) *future.Future[struct{}] {
	if ic == nil {
		return nowhere[struct{}](op)
	}
	n := ic.union.size
	a := &collective.Linear{Send: make([][]byte, n), Recv: make([][]byte, n)}
	return collectively[T](ic.union.of(), what, func(r *collectiveRun) collective.Algorithm {
		if r.op = op; r.err != nil {
			r.err = mpiError(op, element.TypeOf[T]().Unfit)
		}
		prepare(r, a.Send, a.Recv)
		return a
	})
}

// spread divides a buffer of n elements among the ranks of the other group, and returns the number
// of elements for each of them.
func (ic *Intercomm) spread(r *collectiveRun, what string, parts [][]byte, n int, buf []byte) int {
	if ic.remote == 0 {
		return 0
	}
	r.that(n%ic.remote == 0, ClassCount, "%s has %d elements, expected a multiple of the %d ranks of the other group", what, n, ic.remote)
	for rank := range ic.remote {
		length := len(buf) / ic.remote
		parts[ic.other+rank] = buf[rank*length:][:length:length]
	}
	return n / ic.remote
}
