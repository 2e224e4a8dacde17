package mpicx

import (
	"encoding/binary"
	"maps"
	"slices"

	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// How the members of a communicator bring fresh ranks into the one that Replace makes
// (WithRespawn). The pool then has a rank for every process that the job may ever have. The ranks
// after the workers are started when a decision needs them, in order. A rank that was not started
// is like one that is slow to begin: what is sent to it waits for it. So a member that has the
// decision of Replace makes the communicator at once, has the fresh ranks started, and invites
// each of them. All members do, so no member's death matters.
//
// A member may have decided, invited, and died, and the survivors may have decided otherwise. So a
// fresh rank accepts an invitation only when every old member of the communicator has sent the same
// one or has died, and one that has sent it lives. Members that live at the same time have the same
// decision, so no living member has another one. Old members that have died are dead members of the
// new communicator.
// A fresh rank that has accepted an invitation passes it on to the other fresh members: the old ones
// may all die, after they have invited some.
//
// If all ranks with a decision die, the fresh ranks that were started for it wait for the invitation
// of the next decision. If none comes, they end when all ranks before them, the only ones that could
// invite them, have died or ended: a rank that ends tells the fresh ranks that have greeted it.

// recruit begins this rank's part. A fresh rank calls await next.
func (l *lineage) recruit() error {
	g := newRecruiter(l.pool.rank, l.pool.size, l.readInvitation)
	g.abandoned = l.abandoned
	var err error
	if g.t, err = l.pool.t.Sub(transport.RecruitName(), nil); err == nil {
		l.recruiter = g
		g.t.Listen(g)
	}
	return mpiError("Run", err)
}

// isForsaken says whether this is a fresh rank that was not needed, and ranks before it have died. They
// may have made it a member of a communicator, of which only other fresh ranks know: it is dead for those.
func (l *lineage) isForsaken() bool { return l.recruiter != nil && l.recruiter.isForsaken() }

// renew makes the communicator in which fresh ranks take the places of the dead. d is the decision
// of c's members.
func (l *lineage) renew(c *Comm, now succession, d *errchan.Decision) (*Comm, error) {
	s := d.Meaning(func(d *errchan.Decision) any {
		s, err := l.readInvitation(invitation(now.note(c.depth, c.worldRanks), c.worldRanksOf(d.Dead)))
		if err != nil {
			s = &staff{err: err}
		}
		return s
	}).(*staff)
	made, err := l.join(s, uint64(s.line))
	if s.err == nil {
		for _, r := range s.fresh() {
			l.start(r)
		}
		l.recruiter.send(s)
	}
	return made, err
}

// invitation returns an invitation: the length of a note and the note, and the ranks of the job that
// the decision counts as dead.
func invitation(note []byte, dead []int) string {
	b := append(binary.AppendUvarint(nil, uint64(len(note))), note...)
	b = binary.AppendUvarint(b, uint64(len(dead)))
	for _, r := range dead {
		b = binary.AppendUvarint(b, uint64(r))
	}
	return string(b)
}

// readInvitation returns the staff that an invitation means.
func (l *lineage) readInvitation(text string) (*staff, error) {
	size := l.pool.size
	d := errchan.NewReader([]byte(text))
	note := d.Bytes()
	dead := make(map[int]bool)
	for range d.Below(size+1, "number of the dead") {
		dead[d.Below(size, "rank")] = true
	}
	if err := d.End(); err != nil {
		return nil, mpiErrorf("Replace", ClassOther, "an invitation of %d bytes: %v", len(text), err)
	}
	was, members, err := readNote(note, size)
	if err != nil {
		return nil, mpiError("Replace", err)
	}
	first := len(l.workers) + was.used
	if known := slices.Collect(maps.Keys(was.taken)); len(members) == 0 || first > size || slices.ContainsFunc(slices.Concat(members, known), func(r int) bool { return r >= first }) {
		return nil, mpiErrorf("Replace", ClassOther, "an invitation of members %v, %d of whom were fresh, of %d ranks", members, was.used, size)
	}
	spares := make([]int, size-first)
	for i := range spares {
		spares[i] = first + i
	}
	s := was.staff(members, func(r int) bool { return dead[r] }, spares)
	s.invitation = text
	return s, nil
}
