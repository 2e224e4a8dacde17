package mpicx

import (
	"context"
	"fmt"
	"math/bits"

	"github.com/mpicx/go-mpicx/future"
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

// Union is the communicator of both groups.
func (ic *Intercomm) Union() *Comm {
	if ic == nil {
		return nil
	}
	return ic.union
}

// there panics if ic is nil, where no error can be returned.
func (ic *Intercomm) there(call string) *Intercomm {
	ic.Union().there(call)
	return ic
}

// Rank is this rank's number in its own group.
func (ic *Intercomm) Rank() int { return ic.there("Rank").union.rank - ic.own }

// Size is the number of ranks of this rank's own group.
func (ic *Intercomm) Size() int { return ic.there("Size").size }

// RemoteSize is the number of ranks of the other group (MPI_Comm_remote_size). It may be 0 after Shrink.
func (ic *Intercomm) RemoteSize() int { return ic.there("RemoteSize").remote }

// Own returns the rank in Union of a rank of this rank's own group. [Intercomm.Remote] does so
// for the other group.
func (ic *Intercomm) Own(rank int) int { return translated(rank, ic.there("Own").own) }

// Remote returns the rank in Union of a rank of the other group.
func (ic *Intercomm) Remote(rank int) int { return translated(rank, ic.there("Remote").other) }

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
	ic.there("Split")
	for _, r := range ranks {
		if r >= ic.own && r < ic.own+ic.size {
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
func (ic *Intercomm) Close(ctx context.Context) error { return ic.Union().Close(ctx) }

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
		return failed[int](ic.union, mpiErrorf("Agree", ClassOther, "flag %d, expected one of %d bits", flag, agreedBits))
	}
	both := flag<<agreedBits | low // for the group with the higher ranks
	if ic.own == 0 {
		both = flag&low | ^low
	}
	return repair(ic.union, errchan.Proposal{Call: errchan.Agree, Flag: both, Acked: ic.union.acknowledged()}, func(r *repairing[int], d *errchan.Decision) {
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
	return shrink(ic.union, func(made *Comm, dead []int) *Intercomm {
		own, remote := ic.Split(dead)
		small := &Intercomm{union: made, size: ic.size - len(own), remote: ic.remote - len(remote)}
		if ic.own == 0 {
			small.other = small.size
		} else {
			small.own = small.remote
		}
		return small
	})
}

// Merge makes a communicator of both groups, in which a group that passes high comes after one
// that does not (MPI_Intercomm_merge). All ranks of a group pass the same. If both groups pass
// the same, the order is Union's. It is collective.
func (ic *Intercomm) Merge(high bool) *future.Future[*Comm] {
	if ic == nil {
		return nowhere[*Comm]("Merge")
	}
	key := 0
	if high {
		key = 1
	}
	ic.union.notInReduction("begins", "Merge")
	return splitAs(ic.union, signature.Merge, errchan.Merge, choice{key: key}, nil, itself)
}

// InterSend is Send to a rank of the other group.
func InterSend[T any](ic *Intercomm, buf []T, dest, tag int) *future.Future[Status] {
	if bad := ic.check("InterSend", dest, ProcNull); bad != nil {
		return failed[Status](ic.Union(), bad)
	}
	return Send(ic.union, buf, ic.Remote(dest), tag)
}

// InterRecv is Recv from a rank of the other group, or AnySource. Status.Source is its rank there.
func InterRecv[T any](ic *Intercomm, buf []T, source, tag int) *future.Future[Status] {
	const op = "InterRecv"
	bad := ic.check(op, source, AnySource)
	if bad == nil {
		bad = element[T](op)
	}
	if bad != nil {
		return failed[Status](ic.Union(), bad)
	}
	o := new(receipt[Status])
	o.request.Buf, o.request.Signature = bytesOf(buf), signatureOf[T]()
	return o.receive(ic.union, op, ic.Remote(source), tag, func(r *transport.Request) (Status, error) {
		s, err := ic.union.status(op, r, sizeOf[T]())
		if s.Source >= 0 {
			s.Source -= ic.other
		}
		return s, err
	})
}

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

var _ fmt.Stringer = (*Intercomm)(nil)
