package ledger

import (
	"slices"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// Make adds c, which was derived from from in epoch e. Errors of parent are errors of c too.
// Ranks are the members' ranks in the world; nil means that they are the same.
//
// If from had an error after epoch e, other ranks may not have c. Then Make returns false,
// and c is closed and has no parent. With agreed, all ranks have c or will have it, so Make
// moves c past the error instead.
//
// Parent is from, or, if from is broken at all members, from's own parent. So a program
// that shrinks repeatedly does not build a long line of ancestors to look at. The world has
// neither from nor parent.
func (l *Ledger) Make(c, from, parent *Comm, e transport.Epoch, agreed bool, ranks []int) bool {
	c.ledger, c.epoch, c.ranks = l, e, ranks
	c.alone = [1]*Comm{c}
	l.made++
	c.number = l.made
	family := c.alone[:]
	if from == nil {
		l.world = c
	} else if c.closed = from.epoch != e && !agreed; !c.closed && parent != nil {
		c.generation = parent.generation + 1
		c.parent = parent
		if c.next = parent.child; c.next != nil {
			c.next.prev = c
		}
		parent.child = c
		for a := parent; a != nil; a = a.parent {
			if a.joined {
				c.frozen++
			}
		}
	}
	o := l.push(Open, c)
	o.Family, o.Frozen = family, c.isFrozen()
	for a := c.parent; a != nil; a = a.parent {
		for range e.Missing(from.epoch, a.generation) {
			c.epoch = c.epoch.Next(a.generation)
			if a.corrupted != nil && a.corrupted.Comm == a { // an ancestor's is older, or this loop comes to it
				a.bequeath(a.corrupted, family)
			}
			c.moving++
			l.tell(Event{Kind: Advanced, Comm: c})
			o := l.push(Advance, c)
			o.Family, o.Frozen, o.Generation, o.Error = family, c.isFrozen(), a.generation, l.last
		}
	}
	c.update()
	c.forget()
	return !c.closed
}

// Everywhere says that all members have made c, or will, no matter what their programs do.
// Without this call, the end of c's first round shows it.
func (c *Comm) Everywhere() { c.everywhere = true }

// Previous returns the verdict of c's round before the one that is being resolved, or nil.
func (c *Comm) Previous() *Error { return c.previous }

// Ranks returns the members' ranks in the world, for reading only; nil: the same as here. They do
// not change, so it needs no lock.
func (c *Comm) Ranks() []int { return c.ranks }

// Parent returns the communicator whose errors are c's too, or nil.
func (c *Comm) Parent() *Comm { return c.parent }

// Epoch returns the epoch that c is in, or is about to move to.
func (c *Comm) Epoch() transport.Epoch { return c.epoch }

// Generation returns the number of c's ancestors.
func (c *Comm) Generation() int { return c.generation }

// Broken says whether c is corrupted or revoked, as far as this rank knows. Then only
// repairs work on it.
func (c *Comm) Broken() bool { return c.corrupted != nil || c.revoked }

// IsClosed says whether the program has ended the use of c.
func (c *Comm) IsClosed() bool { return c.closed }

// IsRevoked says whether c is revoked, as far as this rank knows.
func (c *Comm) IsRevoked() bool { return c.revoked }

// IsCorrupted says whether c is corrupted.
func (c *Comm) IsCorrupted() bool { return c.corrupted != nil }

// Children returns the communicators made from c, newest first.
func (c *Comm) Children() (all []*Comm) {
	for d := c.child; d != nil; d = d.next {
		all = append(all, d)
	}
	return all
}

// Family returns c and all communicators derived from it, each after its parent. The caller
// must not change the slice.
func (c *Comm) Family() []*Comm {
	all := c.alone[:]
	for i := 0; i < len(all); i++ {
		for d := all[i].child; d != nil; d = d.next {
			all = append(all, d)
		}
	}
	return all
}

// inFamily returns the communicator after d in a walk through c's family, or nil. It
// allocates nothing.
func (c *Comm) inFamily(d *Comm) *Comm {
	if d.child != nil {
		return d.child
	}
	for ; d != c; d = d.parent {
		if d.next != nil {
			return d.next
		}
	}
	return nil
}

// isFrozen says whether c is frozen, as the Frozen of an Output whose family is c alone.
func (c *Comm) isFrozen() []bool {
	if c.frozen > 0 {
		return frozen[:]
	}
	return thawed[:]
}

var frozen, thawed = [1]bool{true}, [1]bool{false}

// DerivedFrom says whether c is a or derived from it. It needs no lock.
func (c *Comm) DerivedFrom(a *Comm) bool {
	for ; c != nil; c = c.parent {
		if c == a {
			return true
		}
	}
	return false
}

// has says whether the rank of the world is a member. It looks whether ranks ascend, as they most
// often do: not before, because all ranks of a large job may make a communicator at a time.
func (c *Comm) has(world int) bool {
	if c.ranks == nil {
		return true
	}
	if !c.looked {
		c.looked, c.ascending = true, slices.IsSorted(c.ranks)
	}
	if c.ascending {
		_, found := slices.BinarySearch(c.ranks, world)
		return found
	}
	return slices.Contains(c.ranks, world)
}

func (c *Comm) worldRank(rank int) int {
	if c.ranks == nil {
		return rank
	}
	return c.ranks[rank]
}

// Close ends the use of c at this rank. The error channel stays open, and joins rounds of peers
// that have not closed c yet.
func (c *Comm) Close() {
	c.closed = true
	if c.child == nil {
		c.untold = nil
	}
	c.join()
	c.update()
	c.forget()
}

// forget asks to forget c, unless c is in use, has an error to resolve, or has derived
// communicators, which errors reach through it (D1).
func (c *Comm) forget() {
	if !c.forgetting && c.isOver() {
		c.forgetting = true
		c.ledger.push(Forget, c)
	}
}

func (c *Comm) isOver() bool {
	return c.closed && !c.forgotten && c != c.ledger.world && c.child == nil && !c.open && c.moving == 0 && !c.revoking
}

// Forgotten follows Forget, and takes c out of the family. It is called when nothing is
// pending on c at this rank, because errors of ancestors have to end that, and no peer needs
// to know what was agreed there, because ancestors' verdicts tell that. If c has an error by
// then, Forgotten returns false, and Forget comes once more. It returns true once.
func (c *Comm) Forgotten() bool {
	p := c.parent
	if c.forgetting = false; !c.isOver() {
		return false
	}
	c.forgotten = true
	if p == nil { // Make has returned false for it
		return true
	}
	if c.prev == nil {
		p.child = c.next
	} else {
		c.prev.next = c.next
	}
	if c.next != nil {
		c.next.prev = c.prev
	}
	c.next, c.prev = nil, nil
	p.forget()
	return true
}
