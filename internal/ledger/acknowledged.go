package ledger

import "slices"

// Died notes the death of a rank. It returns false if the death was known.
func (c *Comm) Died(rank int) (first bool) {
	if slices.Contains(c.failed, rank) {
		return false
	}
	c.failed = append(c.failed, rank)
	c.ledger.tell(Event{Kind: Died, Comm: c, By: rank, Corrupt: true})
	return true
}

// Failed returns the dead, in the order in which this rank learned of them.
func (c *Comm) Failed() []int { return slices.Clone(c.failed) }

// Ack acknowledges the first n deaths of Failed. It returns the number acknowledged,
// and whether that is all.
func (c *Comm) Ack(n int) (acked int, all bool) {
	c.acked = max(c.acked, min(n, len(c.failed)))
	return c.acked, c.acked == len(c.failed)
}

// Acknowledged returns the acknowledged dead, ascending.
func (c *Comm) Acknowledged() []int {
	acked := slices.Clone(c.failed[:c.acked])
	slices.Sort(acked)
	return acked
}

// Unacknowledged says whether a death is not acknowledged.
func (c *Comm) Unacknowledged() bool { return c.acked < len(c.failed) }
