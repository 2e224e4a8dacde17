package mpicx

import (
	"fmt"
	"slices"

	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// left returns what the program of this rank has left behind; c is its first communicator. The
// programs of all ranks of this process have returned.
func (c *Comm) left() []string {
	if c.proc.dead.Load() && c.proc.stage.Load() < stageEnded {
		return nil
	}
	for _, d := range c.family() {
		if !d.isClosed() {
			d.leaveMessages()
		}
	}
	return c.proc.leaks.all()
}

// leaveMessages notes the messages of c, from living ranks, that no receive has matched. It is called
// when the program closes c or returns, because sends that wait end then, and again when all programs
// have returned, for messages that have come since.
func (c *Comm) leaveMessages() {
	if !c.proc.keeps || c.proc.hasErrors(&c.ledger) {
		return
	}
	var all []string
	c.t.EachUnreceived(func(s transport.Status) {
		what := fmt.Sprintf("%d bytes", s.Bytes)
		if of := s.Signature.Element(); of != signature.Bytes && of.Size() > 0 {
			what = fmt.Sprintf("%d × %v", s.Bytes/of.Size(), of)
		}
		all = append(all, fmt.Sprintf("the message of %s from rank %d, tag %d on %s", what, s.Source, s.Tag, c.name))
	})
	slices.Sort(all)
	c.proc.leaks.lose(&c.ledger, all)
}
