package node

import (
	"fmt"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// A lead counts the eager messages that this process has sent to another since its last offer, less
// those that the other process has given credit for. The other process may not have received any of
// them. When the lead reaches its limit (it is far), the next message is an offer, no matter how
// short it is, so its sender waits until it is received. Without a limit, a rank that is ahead of
// another in a loop would fill the memory of the other.
//
// The limit is high for messages of the program, which may send many before they are received. It
// is low for messages of collective calls, because MPI lets any collective call wait for the other
// ranks.
//
// A process gives credit when it has received or discarded a sixteenth of the limit. The sender
// looks for credit when its lead is far. So ranks that send to each other before they receive do
// not wait, as long as they do receive. For collective calls there is no credit: each rank soon
// accepts the offers.
//
// An offer sets the lead of its sender to 0. It does not set received to 0 at the receiver, because
// an offer may be received after messages that follow it. After an offer, the lead may therefore be
// less than the number of messages that are not received, but it is never more than these and the
// received messages that have no credit yet.
type lead struct{ messages, bytes int }

// The limits of leads: mostLead for messages of programs, mostLeadInCalls for those of collective
// calls. Tests may change them.
var (
	mostLead        = lead{70_000, 70 << 20} // 65,536 not received, and a sixteenth without credit yet
	mostLeadInCalls = lead{256, 1 << 20}
)

const (
	mostCredit     = 16   // credit is given for this part of mostLead: a sixteenth
	creditIsBehind = 1024 // the most packets that lookForCredit takes: as many as a ring holds
)

// leads are the leads of this process over another one. The engine's mu protects them.
type leads struct {
	inCalls, others lead // in messages of collective calls, and in all other messages
	received        lead // other messages from that process, received since the last credit to it
}

// inKind returns the lead in the kind of messages that a tag belongs to, and whether it is far.
func (l *leads) inKind(tag int) (of *lead, isFar bool) {
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

// lookForCredit takes packets from a process of this machine, as long as the lead that a tag
// belongs to is far. One of the packets may give credit.
func (e *engine) lookForCredit(process, tag int) {
	in := e.from[process]
	if in == nil || transport.IsCollective(tag) {
		return
	}
	for range creditIsBehind {
		if _, isFar := e.leads[process].inKind(tag); !isFar || !e.lookAt(in) {
			return
		}
	}
}

// received counts a message that this process has received or discarded. When enough are counted,
// it gives their sender credit. It does not count offers, because their senders do not.
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

// takeCredit handles a packet that gives credit. It returns an error if no process sends such a
// packet.
func (e *engine) takeCredit(source int, h header) error {
	if h.id > uint64(mostLead.messages) || h.length > mostLead.bytes+max(nearLimit, e.far) {
		return fmt.Errorf("credit for %d messages of %d bytes, expected at most %d of %d", h.id, h.length, mostLead.messages, mostLead.bytes)
	}
	l := &e.leads[source].others
	l.messages, l.bytes = max(0, l.messages-int(h.id)), max(0, l.bytes-h.length) // less than 0 if an offer was sent meanwhile
	return nil
}
