package ulfmbackend

import (
	"fmt"
	"maps"
	"slices"

	"github.com/mpicx/go-mpicx/internal/errchan"
)

// feed gives something to rank r and carries out what its machine wants.
func (u *universe) feed(r int, f func(*Machine)) {
	m := u.machines[r]
	f(m)
	for {
		o, ok := m.Next()
		if !ok {
			return
		}
		p := &u.programs[r]
		switch {
		case o.Message != nil:
			msg, err := decodeShared(Encode(o.Message), m.size)
			if err != nil {
				panic(err)
			}
			u.tell("%d->%d %s\n", r, o.To, messageText(o.Message))
			if w := [2]int{r, o.To}; u.alive(o.To) && !u.programs[o.To].released {
				u.wires[w] = append(u.wires[w][:len(u.wires[w]):len(u.wires[w])], msg)
			}
		case o.Noticed != nil:
			u.tell("%d: noticed round %d from %d%s\n", r, o.Noticed.Round, o.Noticed.By, corruptText(o.Noticed.Corrupt))
			if p.noticed && (p.fatal || !o.Noticed.Corrupt) || o.Noticed.Round != uint64(len(p.verdicts)) {
				panic(fmt.Sprintf("rank %d is told of round %d after %d verdicts, corrupt %t, and was before: %t, corrupt %t",
					r, o.Noticed.Round, len(p.verdicts), o.Noticed.Corrupt, p.noticed, p.fatal))
			}
			if p.noticed {
				p.secondNotices++
			}
			p.noticed, p.fatal = true, o.Noticed.Corrupt
			p.waits = p.waits && !p.fatal
			if p.prompt && !p.waits && !p.joined {
				p.joined = true
				m.Join(m.Freeze())
			}
		case o.Resolved != nil:
			u.tell("%d: resolved %s\n", r, verdictText(o.Resolved))
			p.noticed, p.fatal, p.joined = false, false, false
			p.verdicts = append(p.verdicts, o.Resolved)
			m.Complete(o.Resolved.Settled)
			u.advance(r, 1, len(o.Resolved.Dead) > 0)
			m.Told()
		case o.Agreed != nil:
			u.end(r)
		case o.Revoked != nil:
			u.tell("%d: revoked by %d\n", r, o.Revoked.Rank)
			p.revoked++
		case o.Asked != nil:
			u.tell("%d: asked to stop: %s\n", r, o.Asked)
		case o.Died != nil:
			u.tell("%d: %d has died\n", r, o.Died.Rank)
			p.died = append(p.died, o.Died.Rank)
		case o.Revoke:
			u.library.revoked = true
		case o.Vote != nil:
			u.library.vote(r, o.Vote)
		case o.Released:
			u.tell("%d: released\n", r)
			p.released = true
			maps.DeleteFunc(u.wires, func(w [2]int, _ []*Message) bool { return w[1] == r })
		}
	}
}

// advance has rank r's machine begin an epoch, as package mpicx does.
func (u *universe) advance(r, generation int, lost bool) {
	m, p := u.machines[r], &u.programs[r]
	u.end(r)
	p.epoch = p.epoch.Next(generation)
	m.Advance(generation, p.epoch, p.joined || (u.parent.joined&^u.parent.told)&(1<<r) != 0, lost)
	u.end(r)
}

// end tells rank r's program what its agreements came to.
func (u *universe) end(r int) {
	m, p := u.machines[r], &u.programs[r]
	p.proposed = slices.DeleteFunc(slices.Clone(p.proposed), func(id errchan.Agreement) bool {
		switch d, _ := m.End(id); {
		case d != nil:
			u.tell("%d: %s decided: %v\n", r, agreementText(id), d)
			if !id.Creates {
				p.agreed = append(p.agreed, *d)
				break
			}
			p.created[id] = *d
		case id.Epoch == p.epoch || m.IsOpen(id):
			return false
		default:
			u.tell("%d: %s ended by an error\n", r, agreementText(id))
			p.ended = append(p.ended, id)
		}
		return true
	})
}

// propose has rank r's program call for an agreement.
func (u *universe) propose(r int, k Stream) {
	p := &u.programs[r]
	u.feed(r, func(m *Machine) {
		id := m.stream(k).id
		p.proposed = append(p.proposed, id)
		m.Propose(id, Value{Flag: p.flag})
	})
}

// waitsFor says whether the program waits for an agreement of this kind.
func (p *program) waitsFor(k Stream) bool {
	return slices.ContainsFunc(p.proposed, func(id errchan.Agreement) bool { return id.Creates == (k == Creations) })
}

// join has rank r join the round that is open.
func (u *universe) join(r int) {
	u.programs[r].joined = true
	u.feed(r, func(m *Machine) { m.Join(m.Freeze()) })
}

// die ends rank r. What it has sent is still under way.
func (u *universe) die(r int) {
	u.dead |= 1 << r
	maps.DeleteFunc(u.wires, func(w [2]int, _ []*Message) bool { return w[1] == r })
}

// deliver has the oldest message on a wire arrive.
func (u *universe) deliver(w [2]int) (err error) {
	msg := u.wires[w][0]
	u.wires[w] = u.wires[w][1:]
	u.feed(w[1], func(m *Machine) { err = m.Step(w[0], msg) })
	return err
}

// parentEvents visits what may come next in the parent.
func (u *universe) parentEvents(visit func(string, func(*universe))) {
	if !u.parent.errs {
		return
	}
	all := true
	var gone []int // the ranks that died, and may have joined before that
	for r := range u.machines {
		bit := uint(1) << r
		switch joined := u.parent.joined&bit != 0; {
		case joined && !u.alive(r):
			gone = append(gone, r)
		case !joined && u.alive(r):
			all = false
			visit(fmt.Sprintf("%d joins the parent's round", r), func(u *universe) { u.joinParent(r) })
		case u.parent.decided && u.alive(r) && u.parent.told&bit == 0:
			visit(fmt.Sprintf("%d gets the parent's verdict", r), func(u *universe) { u.tellParent(r) })
		}
	}
	if !all || u.parent.decided {
		return
	}
	for lost := range 1 << len(gone) {
		visit(fmt.Sprintf("the parent's verdict is made, without %b of the dead %v", lost, gone), func(u *universe) {
			u.parent.decided = true
			for r := range u.machines {
				if i := slices.Index(gone, r); u.parent.joined&(1<<r) == 0 || i >= 0 && lost&(1<<i) != 0 {
					u.parent.lost = true
				} else {
					u.parent.take(r)
				}
			}
		})
	}
}

// joinParent has rank r join the parent's round.
func (u *universe) joinParent(r int) {
	u.parent.joined |= 1 << r
	u.parent.reports[r] = u.machines[r].Freeze()
}

// take has the parent's verdict take what rank r knows.
func (p *parent) take(r int) {
	p.settled = merge(p.settled, p.reports[r], compareSettled, prefer)
}

// tellParent gives rank r the parent's verdict.
func (u *universe) tellParent(r int) {
	u.parent.told |= 1 << r
	u.feed(r, func(m *Machine) {
		m.Complete(u.parent.settled)
		u.advance(r, 0, u.parent.lost)
	})
}

// events calls visit with each state that may come next, and says what happened.
func (u *universe) events(visit func(string, func(*universe))) {
	n := len(u.machines)
	u.parentEvents(visit)
	u.libraryEvents(visit)
	for r := range n {
		if !u.alive(r) {
			continue
		}
		p := u.programs[r]
		if p.leaves && !p.left && len(p.agreed) == p.calls-1 {
			visit(fmt.Sprintf("%d leaves", r), func(u *universe) {
				u.programs[r].left = true
				u.feed(r, (*Machine).Leave)
			})
			continue
		}
		if p.needs && len(p.died) > 0 {
			visit(fmt.Sprintf("%d needs a dead rank", r), func(u *universe) {
				u.programs[r].needs = false
				u.feed(r, func(m *Machine) { m.Lose(sorted(p.died)) })
			})
		}
		if len(p.agreed) < p.calls && !p.left && !p.waitsFor(Repairs) {
			visit(fmt.Sprintf("%d proposes", r), func(u *universe) { u.propose(r, Repairs) })
		}
		if p.creates && !p.left && len(p.created) == 0 && !p.waitsFor(Creations) {
			visit(fmt.Sprintf("%d proposes a communicator", r), func(u *universe) { u.propose(r, Creations) })
		}
		if p.raises > 0 {
			visit(fmt.Sprintf("%d raises", r), func(u *universe) {
				u.programs[r].raises--
				if u.machines[r].final { // nobody can be told
					return
				}
				u.programs[r].joined = true
				u.feed(r, func(m *Machine) { m.Raise([]byte{byte(r), byte(p.raises)}, p.unwinds && p.raises == 1, m.Freeze()) })
			})
		} else if p.noticed && !p.waits && !u.machines[r].stream(Errors).joined {
			visit(fmt.Sprintf("%d joins", r), func(u *universe) { u.join(r) })
		}
		if p.revokes {
			visit(fmt.Sprintf("%d revokes", r), func(u *universe) {
				u.programs[r].revokes = false
				u.feed(r, (*Machine).Revoke)
			})
		}
		if u.deaths > 0 {
			visit(fmt.Sprintf("%d dies", r), func(u *universe) {
				u.deaths--
				u.die(r)
			})
		}
		if u.isDone(r) && p.closes && !p.closed {
			visit(fmt.Sprintf("%d closes", r), func(u *universe) {
				u.programs[r].closed, u.programs[r].prompt = true, true
				u.feed(r, (*Machine).Close)
			})
		}
		for d := range n {
			if !u.alive(d) && !u.machines[r].isDead(d) && !p.released {
				visit(fmt.Sprintf("%d learns that %d has died", r, d), func(u *universe) {
					u.feed(r, func(m *Machine) { m.Died(d) })
				})
			}
		}
		for from := range n {
			w := [2]int{from, r}
			if len(u.wires[w]) == 0 {
				continue
			}
			msg := u.wires[w][0]
			visit(fmt.Sprintf("%v %v reaches %d from %d", msg.Kind, msg.ID, r, from), func(u *universe) {
				if err := u.deliver(w); err != nil {
					panic(err)
				}
			})
			if !u.alive(from) {
				visit(fmt.Sprintf("what %d sent %d is lost", from, r), func(u *universe) { delete(u.wires, w) })
			}
		}
	}
}
