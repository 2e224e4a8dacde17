package mpicx

import (
	"github.com/mpicx/go-mpicx/internal/diagnosis"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// Held returns how many requests of the rank have not ended, and how many messages to it wait for
// receives.
func (c *Comm) Held() (requests, messages int) {
	return len(transport.Pending(c.t)), c.t.(interface{ Kept() int }).Kept()
}

// Underway returns how many requests of this process MPI has, and how many buffers are pinned for
// it, except those that wait for packets.
func Underway() int {
	processes.Lock()
	defer processes.Unlock()
	if processes.Job == nil {
		return 0
	}
	return processes.Underway()
}

// Break makes MPI fail in this process, for good.
func Break(err error) { processes.Break(err) }

// AnswerOfStall is what the rank answers if it is asked whether the job has stalled.
func AnswerOfStall(c *Comm) string { return c.answer(diagnosis.ByStall, c.rank) }
