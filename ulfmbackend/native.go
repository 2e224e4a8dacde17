package ulfmbackend

import "slices"

// votes replaces the decisions of a Machine's roots by votes of an MPI library: see "Native" in
// the package's comment.
type votes struct {
	tree   tree     // that proposals and candidates take; the same at all ranks between two votes
	trees  uint64   // how many trees there were before this one
	ended  uint64   // how many votes have ended
	voting bool     // this rank has voted, and the vote has not ended
	ballot *Message // the candidate of that vote; nil: this rank has voted without one
	fallen bool     // this process is dead for the others, or for a vote: it votes for whatever they decide
}

// The first word of a vote has these bits; all others say which ranks are alive.
const (
	accepted    = 1 << iota // the candidate can be taken
	firstLiving = iota
)

// Native makes the machine's library revoke and agree. It is called before anything else.
func (m *Machine) Native() { m.votes = &votes{tree: newTree(m.rank, m.size)} }

// isVoted says whether the library decides a stream's agreements.
func (m *Machine) isVoted(k Stream) bool { return m.votes != nil && k != Closings }

// treeOf returns the tree that a stream's proposals take.
func (m *Machine) treeOf(k Stream) *tree {
	if m.isVoted(k) {
		return &m.votes.tree
	}
	return &m.tree
}

// Fall says that this process is dead for the others.
func (m *Machine) Fall() {
	if m.votes != nil {
		m.votes.fallen = true
		m.concede()
	}
}

// propose sends a complete value to the parent; the root sends it to all ranks, as a
// candidate on which the library agrees.
func (m *Machine) propose(k Stream) {
	s, v := m.stream(k), m.votes
	switch {
	case v.fallen || v.tree.up < 0 && (v.voting || m.isForNobody(k)):
	case v.tree.up >= 0:
		s.sent = true
		up := newMessage(Up, k, s.id, s.value) // it is no notice: the parent may hold it
		up.vote = v.trees
		m.send(v.tree.up, up)
	default:
		s.sent = true
		candidate := m.newDecision(k)
		candidate.vote = v.ended
		m.voteFor(candidate)
	}
}

// takeVoted takes a proposal or a candidate. It keeps those of later votes, trees, epochs or
// agreements.
func (m *Machine) takeVoted(from int, msg *Message) {
	v, s := m.votes, m.stream(msg.Stream)
	ahead := msg.Stream == Errors && msg.ID.Seq > s.id.Seq ||
		msg.Stream != Errors && !msg.ID.Epoch.Stale(s.id.Epoch) && (msg.ID.Epoch != s.id.Epoch || msg.ID.Seq > s.id.Seq)
	switch {
	case msg.Kind == Decided && msg.vote > v.ended:
		m.later = append(m.later, received{from, msg})
	case msg.Kind == Decided && msg.vote == v.ended && !v.voting:
		m.voteFor(msg)
	case msg.Kind == Decided: // this rank has voted without it
	case msg.vote > v.trees || ahead:
		m.later = append(m.later, received{from, msg})
	case msg.vote == v.trees && msg.ID == s.id:
		s.hear(from)
		m.add(s, *msg.Value)
		m.try(msg.Stream)
	}
}

// voteFor passes a candidate on, and votes for it if this rank can take it.
func (m *Machine) voteFor(candidate *Message) {
	for c := range m.votes.tree.eachChild {
		m.send(c, candidate)
	}
	m.votes.ballot = candidate
	m.vote(m.canTake(candidate))
}

// canTake says whether this rank can take a candidate: it has joined that agreement, is not
// frozen, and is not in another epoch.
func (m *Machine) canTake(candidate *Message) bool {
	if candidate == nil { // this rank has voted without one
		return false
	}
	s := m.stream(candidate.Stream)
	return s.joined && s.id == candidate.ID && !(m.frozen && candidate.Stream.isCalled())
}

// vote begins an agreement of the library on whether the candidate is taken and which ranks
// are alive.
func (m *Machine) vote(accepts bool) {
	v := m.votes
	v.voting = true
	words := make([]uint32, (m.size+firstLiving+31)/32)
	for i := range words {
		words[i] = ^uint32(0)
	}
	if !accepts {
		words[0] &^= accepted
	}
	if !v.fallen {
		for _, r := range m.dead {
			words[(r+firstLiving)/32] &^= 1 << ((r + firstLiving) % 32)
		}
	}
	m.out.Push(Output{Vote: words})
}

// Voted takes the result of a vote.
func (m *Machine) Voted(words []uint32) {
	v := m.votes
	candidate := v.ballot
	v.voting, v.ballot = false, nil
	v.ended++
	lives := func(r int) bool { return words[(r+firstLiving)/32]&(1<<((r+firstLiving)%32)) != 0 }
	v.fallen = v.fallen || !lives(m.rank)
	changed := false
	for r := range m.size {
		changed = !lives(r) && v.tree.markDead(r) || changed
	}
	if changed {
		v.trees++
		for k := range streams {
			if s := m.streams[k]; s != nil && m.isVoted(k) {
				s.heard, s.sent = nil, false
			}
		}
	}
	if words[0]&accepted != 0 && m.canTake(candidate) {
		m.stream(candidate.Stream).end(candidate)
		m.decided(candidate)
	}
	m.takeLater()
	m.retry()
}

// concede votes without a candidate if this rank waits for one and a member of the tree is
// dead, because the candidate may never come. If this process itself is dead for the others,
// concede always votes.
func (m *Machine) concede() {
	v := m.votes
	if v == nil || v.voting {
		return
	}
	isNews := func(r int) bool { return !v.tree.isDead(r) }
	waits := slices.ContainsFunc(m.streams[:Closings], func(s *stream) bool { return s != nil && s.joined })
	if v.fallen || waits && slices.ContainsFunc(m.dead, isNews) {
		m.vote(v.fallen)
	}
}
