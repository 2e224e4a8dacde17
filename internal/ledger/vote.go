package ledger

// A Vote is the end of a TryAll at this rank.
//
// No rank may leave a TryAll with nil while another leaves it with an error. First
// all meet in a barrier, where errors still end it. Then all vote on whether each
// has come through: with one no, all of them wait for the verdict. A rank says no
// when it joins a round before it is through the barrier. Who has said yes joins no
// round before the votes are counted: its program would not be told of the verdict,
// and what it raised next would belong with it (P2). That it does not join keeps
// nobody waiting: all have begun the barrier, so each says yes or no by itself.
type Vote struct {
	Owner any // the caller's

	comm  *Comm
	cast  bool
	given bool // up: see GiveUp
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

// Withdraw says no, unless the rank has voted.
func (v *Vote) Withdraw() {
	if !v.cast {
		v.cast = true
		v.comm.ledger.push(Withdraw, v.comm).Vote = v
	}
}

// GiveUp says no in the votes of c that this rank has not cast. The rank waits for the
// verdict of another communicator, which ranks that have said yes do not join.
func (c *Comm) GiveUp() {
	for _, v := range c.votes {
		v.given = v.given || !v.cast
		v.Withdraw()
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
