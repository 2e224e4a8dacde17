package ledger

// A Vote is the end of a TryAll at this rank.
//
// No rank may leave a TryAll with nil while another leaves it with an error. So the end
// has two phases. The ranks meet in a barrier, which an error may still end. Then each
// votes: yes if it is through the barrier, no if it has joined a round before. If there is
// one no, all ranks wait for the verdict of that round.
//
// A rank that has voted yes joins no round before the votes are counted. Otherwise TryAll
// could return nil although the rank has consented to the end of a round, and what its
// program raised next would belong in that round (P2). Joining late cannot cause a deadlock:
// all ranks have begun the barrier, so each votes without help from others.
type Vote struct {
	Owner any // the caller's

	comm    *Comm
	cast    bool
	given   bool // GiveUp has said no
	unaided bool // no goroutine has to wait for the barrier, so nothing that it waits for delays the vote
}

// Ask begins a vote. The rank has begun the barrier of its TryAll.
func (c *Comm) Ask(owner any) *Vote {
	v := &Vote{Owner: owner, comm: c}
	c.votes = append(c.votes, v)
	if c.frozen > 0 {
		v.Withdraw()
	}
	return v
}

// AskUnaided is Ask for a vote that is cast as soon as the barrier is over, whatever the program
// does.
func (c *Comm) AskUnaided(owner any) *Vote {
	v := c.Ask(owner)
	v.unaided = true
	return v
}

// Withdraw says no, unless the rank has voted.
func (v *Vote) Withdraw() {
	if !v.cast {
		v.cast = true
		v.comm.ledger.push(Withdraw, v.comm).Vote = v
	}
}

// GiveUp votes no in the votes of c that this rank has not cast and that need a waiting goroutine:
// it waits for the verdict of another communicator, and ranks that have voted yes do not join that
// round.
func (c *Comm) GiveUp() {
	for _, v := range c.votes {
		if !v.unaided {
			v.given = v.given || !v.cast
			v.Withdraw()
		}
	}
}

// GivenUp says whether GiveUp has said no. Then the communicator has no further error
// unless this rank raises one.
func (v *Vote) GivenUp() bool { return v.given }

// Confirm says yes, unless the rank has voted. It returns whether it did; then Counted
// has to follow.
func (v *Vote) Confirm() bool {
	if v.cast {
		return false
	}
	v.cast = true
	v.comm.ledger.holds++
	return true
}

// Counted says that the votes are counted, or that this rank no longer waits for that.
func (v *Vote) Counted() {
	l := v.comm.ledger
	if l.holds--; l.holds > 0 {
		return
	}
	held := l.held
	l.held = nil
	for _, r := range held {
		if r.Verdict == nil {
			r.Comm.submit(r)
		}
	}
	l.attend()
}

// End forgets the vote.
func (v *Vote) End() {
	for i, other := range v.comm.votes {
		if other == v {
			v.comm.votes = append(v.comm.votes[:i:i], v.comm.votes[i+1:]...)
			return
		}
	}
}
