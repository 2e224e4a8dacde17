package mpicx

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/internal/couple"
	"github.com/mpicx/go-mpicx/internal/element"
	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/ledger"
	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// This is how two groups that do not know each other make an Intercomm (paper 003), as package
// couple describes it. In the end all living ranks of both groups have it, or all have an error.
// The agreement of the union is on a channel of its own, which no error ends, and needs all living
// members. A group whose call has failed counts as dead there from the start. The agreement
// therefore ends, with the same result at all its members: an error, because members are missing.
//
// The black channel has no agreements. It uses barriers instead, which no rank completes unless all
// ranks enter. A rank may fail alone there, because of an error. So each rank asks all members of
// the other group, and fails too if one of them has failed.

// A coupling is one rank's part in a call of CreateIntercomm. No lock protects it: each step begins
// when the one before has ended, on the goroutine that has brought its result. The steps:
//
//   - begin takes the numbers that distinguish the messages of this call. All members take them when
//     they call, because only calls have the same order at all members.
//   - meet agrees that all members of the group have called. Only then is the group's letter sent: a
//     group from which a letter has come will learn how the call ends.
//   - lead, at the leader, exchanges the letters.
//   - learned, after the second agreement, has the other group's letter at all members or at none.
//   - unite agrees in the union of both groups.
type coupling struct {
	local    *comm
	leader   *bridging     // nil: this rank is not the leader
	own      couple.Letter // of this rank's group
	registry *registry
	future   *future.Future[*Intercomm]
	end      func(*Intercomm, error)

	// The epoch of the call, and what identifies the group's two exchanges: the tags of their
	// messages with the black channel, or the two agreements with the ULFM backend.
	epoch          transport.Epoch
	tags           [2]int
	called, learnt errchan.Agreement
}

// CreateIntercomm makes an Intercomm of the ranks of local and of another group that calls it
// (MPI_Intercomm_create). The groups have no rank in common. All ranks of a group give the same
// localLeader, a rank of local. The two leaders have a communicator in common, the bridge, over
// which they exchange a message with the tag; remoteLeader is the other leader's rank there.
// Only the leaders' values of bridge, remoteLeader and tag are used.
//
// All living ranks of both groups get the Intercomm, or all get an error, no matter which ranks
// die, and which errors local and the bridge have, in the meantime. A Wait may return such an error
// first; the next Wait on the future returns the result of CreateIntercomm. A rank may have died
// since: the first use of the Intercomm reports that.
//
// The Intercomm is derived from the world in which the job began, which all its ranks have in
// common (with spares: from all ranks of the job). An error of that world interrupts Waits on the
// Intercomm. Errors of local and of the bridge do not. A group that has lost the other can
// therefore continue.
func CreateIntercomm(local *Comm, localLeader int, bridge *Comm, remoteLeader, tag int) *future.Future[*Intercomm] {
	if local == nil {
		return nowhere[*Intercomm](intercommOp)
	}
	local.notInReduction("begins", intercommOp)
	k := &coupling{local: local.of()}
	if local.rank == localLeader {
		k.leader = newBridging(bridge, remoteLeader, tag)
	}
	if err := k.begin(); err != nil {
		// The other leader waits for a letter. If this rank has raised an error, err becomes the
		// verdict only later, so the letter can't quote it.
		why := err
		if hasType[*withheld](err) {
			why = fmt.Errorf("%s has an error of its rank %d", local.name, local.rank)
		}
		k.leader.exchange(couple.Letter{Failure: why.Error()}, nil)
		return failed[*Intercomm](local.of(), err)
	}
	// If local is corrupted in the meantime, Waits still return the result: it is the same at all
	// members of both groups, and the other group does not know of the corruption (I1).
	k.future, k.end = begins[*Intercomm](local.of(), intercommOp, ledger.TakeToRepair)
	var bad error
	if localLeader < 0 || localLeader >= local.size {
		bad = mpiErrorf(intercommOp, ClassRank, "leader %d of %s, expected 0 to %d", localLeader, local.name, local.size-1)
	}
	k.meet(bad)
	return k.future
}

// begin reserves the numbers of the group's exchanges, in the order of the collective calls on
// local, and fills in the group's letter.
func (k *coupling) begin() (err error) {
	c := k.local
	if k.epoch, err = c.begin(intercommOp); err != nil {
		return err
	}
	if k.registry, err = c.registry(); err != nil {
		return err
	}
	w := call{Kind: signature.CreateIntercomm}.Word()
	seq := c.t.Call(k.epoch, w)
	k.tags = [2]int{transport.CollectiveTag(seq), transport.CollectiveTag(c.t.Call(k.epoch, w))}
	if c.ulfm != nil {
		k.called = c.ulfm.Reserve(k.epoch, errchan.CreateIntercomm)
		// The first agreement is abandoned if local is revoked. The second is not, so it ends in
		// the same way at all ranks.
		k.learnt = c.ulfm.Reserve(k.epoch, errchan.Agree)
	}
	root := c.root()
	k.own = couple.Letter{ID: transport.UnionName(k.epoch, uint64(seq)).Digest(c.id), Name: c.name, Members: make([]int, c.size)}
	for r := range c.size {
		k.own.Members[r] = c.worldRank(r)
	}
	k.own.Epoch = uint64(locked(&c.proc.mu, root.ledger.Epoch)) // if an error has come since k.epoch, the call fails at all ranks
	// The other group asks about the call once it has the letter, which is sent later.
	k.registry.feed(func(m *couple.Registry) { m.Begin(k.own.ID) })
	return nil
}

// registry returns the rank's registry, and makes it if necessary. Several goroutines may need it
// first. Listen may take messages before it returns, so it is called when the lock is free.
func (c *comm) registry() (*registry, error) {
	root := c.root()
	l := root.lineage
	l.mu.Lock()
	g := l.registry
	var err error
	if g == nil {
		g = &registry{calls: couple.NewRegistry(), failed: make(map[uint64]func())}
		if g.t, err = root.t.Sub(transport.RegistryName(), nil); err == nil {
			l.registry = g
			defer g.t.Listen(g)
		}
	}
	l.mu.Unlock()
	return g, err
}

// meet begins the group's first agreement: that all members have called. bad is the error of this
// rank's arguments, or nil.
func (k *coupling) meet(bad error) {
	k.agree(0, k.called, bad == nil, nil, func(_ []byte, err error) {
		if bad != nil {
			err = bad
		}
		switch {
		case err != nil:
			k.leader.exchange(couple.Letter{Failure: err.Error()}, nil)
			k.fail(err)
			k.agree(1, k.learnt, false, nil, nil) // for members that continue
		case k.leader != nil:
			k.lead()
		default: // the decision has the greatest note, which is the leader's
			k.agree(1, k.learnt, true, nil, k.learned)
		}
	})
}

// lead exchanges letters with the other leader, and then begins the group's second agreement. It
// stops waiting for the letter if local has an error or a rank of it dies.
func (k *coupling) lead() {
	var done atomic.Bool // the letter and an error may come at once, on two goroutines
	got := func(other couple.Letter) {
		if !done.Swap(true) {
			note, err := element.Encode(other.Checked(k.own, k.local.root().size))
			k.agree(1, k.learnt, err == nil, note, k.learned)
		}
	}
	trouble := &onlyError{name: intercommOp, aside: true, done: func(err error) {
		got(couple.Letter{Failure: fmt.Sprintf("%s has an error: %v", k.own.Name, err)})
	}}
	k.local.receiveError(trouble, k.epoch, k.tags[1])
	k.leader.exchange(k.own, func(other couple.Letter) {
		got(other)
		k.local.t.Cancel(&trouble.request)
	})
}

// agree begins the group's agreement with the given number and id. With the black channel it begins
// an exchange of the notes instead. done gets the greatest note of all members. It is nil if this
// rank does not need the result, and takes part because the others do.
func (k *coupling) agree(number int, id errchan.Agreement, flag bool, note []byte, done func(note []byte, err error)) {
	c := k.local
	if c.ulfm == nil {
		a := &collective.AllgatherAny{}
		a.Send = note
		k.exchange(c.t, k.epoch, k.tags[number], a, func(err error) {
			switch {
			case done == nil:
				return
			case err != nil:
				done(nil, c.failure(intercommOp, err))
				return
			}
			done(slices.MaxFunc(a.Parts, slices.Compare), nil)
		})
		return
	}
	// A rank that a mismatch has halted must not wait for others: they wait for its messages.
	aside := c.showMismatch(call{Kind: signature.CreateIntercomm}.Word(), k.epoch, waiting.Of(k.future))
	c.ulfm.Propose(id, assent(flag, note), func(d *errchan.Decision, over error) {
		c.t.Cancel(aside)
		if done == nil {
			return
		}
		if err := c.outcome(errchan.CreateIntercomm.String(), errchan.CreateIntercomm, d, over); err != nil {
			done(nil, err)
			return
		}
		done(d.Note, nil)
	})
}

// assent returns a proposal for an agreement of CreateIntercomm. flag says that this rank consents.
// The decision has the bitwise AND of the flags, so one rank that does not consent makes it 0.
func assent(flag bool, note []byte) errchan.Proposal {
	p := errchan.Proposal{Call: errchan.CreateIntercomm, Note: note}
	if flag {
		p.Flag = -1
	}
	return p
}

// exchange starts the collective algorithm a on t. done gets its error.
func (k *coupling) exchange(t transport.Comm, e transport.Epoch, tag int, a collective.Algorithm, done ender) {
	x := &collective.Exchange{Name: intercommOp, Signature: call{Kind: signature.CreateIntercomm}.Word()}
	x.Start(t, e, tag, a, done)
}

// learned handles the result of the second agreement: the letter that the leader has received.
func (k *coupling) learned(note []byte, err error) {
	var other couple.Letter
	switch {
	case err != nil:
	case len(note) == 0:
		err = mpiErrorf(intercommOp, ClassRank, "no leader: not all ranks of %s give the same one", k.local.name)
	default:
		if other, err = element.Decode[couple.Letter](note); err != nil {
			err = mpiError(intercommOp, err)
		} else if other.Failure != "" {
			err = mpiErrorf(intercommOp, ClassOther, "%s", strings.TrimPrefix(other.Failure, "mpicx: "+intercommOp+": "))
		}
	}
	if err != nil {
		k.fail(err)
		return
	}
	k.unite(other)
}

// fail ends the call at this rank, whose group does not know the other.
func (k *coupling) fail(err error) {
	k.registry.end(k.own.ID, 0, true)
	k.end(nil, err)
}

// unite makes this rank's side of the union, and begins the agreement of its members. All that
// identifies the union comes from the two letters, so members of both groups compute the same.
//
// Errors of a group are not errors of the union, nor the other way round: the union's parent is the
// root, which both groups have in common. A member consents only once it has made its side, so all
// have one at the decision. If the call fails, the side is discarded.
func (k *coupling) unite(other couple.Letter) {
	c, root := k.local, k.local.root()
	u := couple.UnionOf(k.own, other)
	id := transport.AssentName(u.Second).Digest(u.First)
	name := transport.UnionName(transport.Epoch(k.own.Epoch), id)
	made, err := root.deriveUnder(root, c, name, true, u.Members, u.Members, u.Name)
	var t transport.Comm
	if err == nil {
		t, err = root.t.Sub(transport.AssentName(id), u.Members)
	}
	if err != nil {
		k.fail(mpiError(intercommOp, err))
		return
	}
	ic := newIntercomm(made, c.size, len(other.Members), u.IsFirst)
	done := func(err error) {
		// With the ULFM backend all members of the union have the same error, and need not be told.
		k.registry.end(k.own.ID, other.ID, err != nil && c.ulfm == nil)
		if err != nil {
			made.discard()
			ic = nil
		}
		k.end(ic, err)
	}
	// If the call of the other group has failed, its members never come to the barrier, or to the
	// agreement. This rank therefore asks them. An answer ends the barrier at this rank, or makes
	// all of them count as dead in the agreement.
	if c.ulfm == nil {
		k.registry.ask(other.ID, other.Members, (*couple.Registry).AskAll, func() { t.Revoke(errNotMade) })
		k.exchange(t, 0, transport.CollectiveTag(1), collective.Barrier{}, func(err error) { done(mpiError(intercommOp, err)) })
		return
	}
	ch := openAssent(t, id)
	missing, at := ic.other, t.Rank()%len(other.Members) // so the members are asked about equally often
	k.registry.ask(other.ID, slices.Concat(other.Members[at:], other.Members[:at]), (*couple.Registry).AskOne, func() {
		for r := range len(other.Members) {
			ch.Died(missing + r)
		}
	})
	ch.Propose(ch.Reserve(0, errchan.CreateIntercomm), assent(true, nil), func(d *errchan.Decision, over error) {
		ch.Release()
		done(k.united(ic, d, over))
	})
}

var errNotMade = errors.New("the other group has not made the Intercomm")

// united returns the error of the call according to the agreement of the union, or nil.
func (k *coupling) united(ic *Intercomm, d *errchan.Decision, over error) error {
	if over != nil {
		return k.local.failure(intercommOp, over)
	}
	own, other := ic.Split(d.Dead)
	switch {
	case len(own) > 0:
		k.local.learn(own)
		return k.local.met(&ProcFailedError{Ranks: own})
	case len(other) > 0:
		return mpiErrorf(intercommOp, ClassOther, "the other group has lost ranks %v, or has not made the Intercomm", other)
	}
	return nil
}
