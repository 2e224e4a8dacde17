package node

import (
	"fmt"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// A lead is what this process has sent to another since the last offer, less what the other has given credit for.
// The other process may not have received any of it. If the lead is far, the next message is an offer, however
// short it is, so its sender waits until it is received. Otherwise a rank that is ahead of another in a loop would
// fill that one's memory. A program may send many messages before they are received, but a collective call may
// always wait for the other ranks.
//
// A process gives credit when it has received half of what another may be ahead. So two ranks that send to each
// other before they receive never wait, as long as they do receive. A collective call needs no credit: its offers
// are accepted.
type lead struct{ messages, bytes int }

var (
	mostLead        = lead{1 << 16, 64 << 20}
	mostLeadInCalls = lead{256, 1 << 20}
)

// leads are those over one process.
type leads struct {
	inCalls, others lead
	received        lead // of its others, since the last credit or offer
}

// of returns the lead in messages like those with this tag, and whether it is far.
func (l *leads) of(tag int) (of *lead, isFar bool) {
	of, most := &l.others, &mostLead
	if transport.IsCollective(tag) {
		of, most = &l.inCalls, &mostLeadInCalls
	}
	return of, of.messages >= most.messages || of.bytes >= most.bytes
}

func (l *lead) grow(bytes int) {
	l.messages++
	l.bytes += bytes
}

// received counts a message that this process has received, and gives its sender credit.
func (e *engine) received(a *arrival) {
	if transport.IsCollective(a.header.tag) || e.dead[a.source] {
		return
	}
	got := &e.leads[a.source].received
	if a.header.kind == offer {
		*got = lead{}
		return
	}
	if got.grow(a.header.length); 2*got.messages >= mostLead.messages || 2*got.bytes >= mostLead.bytes {
		e.sendPacket(a.source, &header{kind: credit, id: uint64(got.messages), length: got.bytes}, nil)
		*got = lead{}
	}
}

// takeCredit takes a packet that gives credit.
func (e *engine) takeCredit(source int, h header) error {
	if h.id > uint64(mostLead.messages) || h.length > mostLead.bytes+max(nearLimit, e.far) {
		return fmt.Errorf("credit for %d messages of %d bytes, expected at most %d of %d", h.id, h.length, mostLead.messages, mostLead.bytes)
	}
	l := &e.leads[source].others
	l.messages, l.bytes = max(0, l.messages-int(h.id)), max(0, l.bytes-h.length) // an offer may have come between
	return nil
}
