package mpicx

import (
	"encoding/binary"

	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/ledger"
	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// agreements returns what decides c's agreements.
func (c *Comm) agreements() interface {
	Reserve(transport.Epoch, errchan.Calls) errchan.Agreement
	Propose(errchan.Agreement, errchan.Proposal, func(*errchan.Decision, error))
} {
	if c.ulfm != nil {
		return c.ulfm
	}
	return (*voter)(c)
}

// voter makes the agreements of a Comm with the black channel, where nobody dies. They are numbered
// apart from collective calls, because a rank that has waited in vain for a Barrier may be in an
// Agree with ranks that come to the Barrier later.
type voter Comm

// Reserve takes this rank's place in the next agreement of epoch e.
func (c *voter) Reserve(e transport.Epoch, _ errchan.Calls) errchan.Agreement {
	c.proc.mu.Lock()
	defer c.proc.mu.Unlock()
	v := &c.voting
	if e > v.epoch {
		v.epoch, v.made = e, 0
	}
	if e == v.epoch { // not if e is over: then the messages match nothing
		v.made++
	}
	return errchan.Agreement{Epoch: e, Seq: v.made}
}

// Propose begins an agreement that ends as a TryAll does (see ledger.Vote): the ranks meet in a
// barrier, and then vote. Their proposals are beside the votes.
func (c *voter) Propose(id errchan.Agreement, p errchan.Proposal, done func(*errchan.Decision, error)) {
	b := &ballot{comm: (*Comm)(c), id: id, done: done}
	binary.LittleEndian.PutUint16(b.paper[1:], ^uint16(p.Call))
	binary.LittleEndian.PutUint64(b.paper[3:], uint64(p.Flag))
	c.proc.feed(func() { b.entry = c.ledger.AskUnaided(b) })
	b.exchange(1, c.chooser.Barrier(nil), b.met)
}

// ballot is this rank's part in an agreement by votes. It needs no goroutine that waits.
type ballot struct {
	comm  *Comm
	entry *ledger.Vote
	id    errchan.Agreement
	// paper is this rank's vote (1 is yes), the complement of its call, and its flag. When the
	// votes are counted it is the AND of all.
	paper [11]byte
	done  func(*errchan.Decision, error)
}

func (b *ballot) exchange(phase int, a collective.Algorithm, done ender) {
	x := &collective.Exchange{Name: "Agree", Signature: call{Kind: signature.Agree}.Word()}
	x.Start(b.comm.t, b.id.Epoch, transport.AgreementTag(2*int(b.id.Seq)+phase), a, done)
}

// met ends the barrier. The rank votes, unless it has joined a round.
func (b *ballot) met(err error) {
	confirmed := false
	b.comm.proc.feed(func() {
		if err != nil {
			b.entry.Withdraw()
		}
		if confirmed = b.entry.Confirm(); !confirmed {
			b.entry.End()
		}
	})
	switch {
	case err != nil:
		b.done(nil, err)
	case confirmed:
		b.start(true)
	default:
		b.await()
	}
}

// start casts this rank's vote.
func (b *ballot) start(yes bool) {
	done := func(error) {} // a rank that has said no waits for the verdict
	if yes {
		b.paper[0], done = 1, b.counted
	}
	count := collective.Reduction{Recv: b.paper[:], Op: unanimous, Element: 1}
	b.exchange(0, b.comm.chooser.Allreduce(nil, &count), done)
}

func (b *ballot) counted(err error) {
	agreed := err == nil && b.paper[0] == 1
	if err != nil || agreed { // before this rank joins a round: what comes then is later
		b.done(&errchan.Decision{
			Calls: errchan.Calls(^binary.LittleEndian.Uint16(b.paper[1:])),
			Flag:  int(binary.LittleEndian.Uint64(b.paper[3:])),
		}, err)
	}
	b.comm.proc.feed(func() {
		b.entry.Counted()
		b.entry.End()
	})
	if err == nil && !agreed {
		b.await()
	}
}

// await waits for the error because of which some rank has said no.
func (b *ballot) await() {
	b.comm.receiveError("Agree", b.id.Epoch, transport.AgreementTag(2*int(b.id.Seq)), func(err error) { b.done(nil, err) })
}
