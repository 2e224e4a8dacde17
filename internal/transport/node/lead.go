package node

import "github.com/mpicx/go-mpicx/internal/transport"

// A lead is what this process has sent to another since the last offer. The other process may not
// have received any of it. If the lead is far, the next message is an offer, however short it is, so
// its sender waits until it is received. Otherwise a rank that is ahead of another in a loop would
// fill that one's memory. A program may send many messages before they are received, but a
// collective call may always wait for the other ranks.
type lead struct{ messages, bytes int }

var (
	mostLead        = lead{1 << 16, 64 << 20}
	mostLeadInCalls = lead{256, 1 << 20}
)

// leads are those over one process.
type leads struct{ inCalls, others lead }

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
