package ledger

import (
	"fmt"
	"slices"
)

// Idle returns nil if no round is open here or at an ancestor, all reports are
// resolved, and the rank owes no join. That must hold once nothing more can happen.
// Otherwise the error says what is not over.
func (c *Comm) Idle() error {
	switch {
	case slices.Contains(c.ledger.owed, c):
		return fmt.Errorf("round %d is owed", c.round)
	case c.open || c.joined || c.losing:
		return fmt.Errorf("round %d: open %t, joined %t, needs the dead %t", c.round, c.open, c.joined, c.losing)
	case len(c.raised)+len(c.unsubmitted) > 0:
		return fmt.Errorf("%d raised are not resolved, and %d of them not submitted", len(c.raised), len(c.unsubmitted))
	case c.settling != nil || len(c.later) > 0 || c.moving > 0 || c.revoking:
		return fmt.Errorf("settling %t, %d inputs wait, %d verdicts move, revoking %t", c.settling != nil, len(c.later), c.moving, c.revoking)
	case c.frozen != 0:
		return fmt.Errorf("frozen %d", c.frozen)
	}
	return nil
}
