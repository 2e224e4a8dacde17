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
// A process gives credit when it has received, or discarded, a sixteenth of what another may be ahead. Its sender
// looks for the credit when the lead is far. So ranks that send to each other before they receive never wait, as
// long as they do receive. A collective call needs no credit: its offers are accepted.
//
// The received do not begin anew with an offer, because that may be received after messages that follow it. A lead
// then is less than what was not received, but never more than that and what there is no credit for yet.
type lead struct{ messages, bytes int }

var (
	mostLead        = lead{70_000, 70 << 20} // 65,536 that wait, and what there is no credit for yet
	mostLeadInCalls = lead{256, 1 << 20}
)

const (
	mostCredit     = 16   // this part of the lead that is far
	creditIsBehind = 1024 // packets at most, as many as a ring has
)

// leads are those over one process.
type leads struct {
	inCalls, others lead
	received        lead // of its others, since the last credit
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

// lookForCredit takes packets of a process while the lead in messages like those with this tag is far.
func (e *engine) lookForCredit(process, tag int) {
	in := e.from[process]
	if in == nil || transport.IsCollective(tag) {
		return
	}
	for range creditIsBehind {
		if _, isFar := e.leads[process].of(tag); !isFar || !e.lookAt(in) {
			return
		}
	}
}

// received counts a message that this process has received or discarded, and gives its sender credit. It does
// not count offers, because their senders do not.
func (e *engine) received(a *arrival) {
	if transport.IsCollective(a.header.tag) || a.header.listener || a.header.kind != whole || e.dead[a.source] || e.err != nil {
		return
	}
	got := &e.leads[a.source].received
	if got.grow(a.header.length); mostCredit*got.messages >= mostLead.messages || mostCredit*got.bytes >= mostLead.bytes {
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
