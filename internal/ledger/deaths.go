package ledger

import "slices"

// Died notes that the process of a rank has died. It returns false if that is no
// news.
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

// Ack acknowledges the first n of Failed, and returns how many are.
func (c *Comm) Ack(n int) (acked int, all bool) {
	c.acked = max(c.acked, min(n, len(c.failed)))
	return c.acked, c.acked == len(c.failed)
}

// Acknowledged returns the dead that are, ascending.
func (c *Comm) Acknowledged() []int {
	acked := slices.Clone(c.failed[:c.acked])
	slices.Sort(acked)
	return acked
}

// Unacknowledged says whether some are not.
func (c *Comm) Unacknowledged() bool { return c.acked < len(c.failed) }
