package blackchannel_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/mpicx/go-mpicx/blackchannel"
	"github.com/mpicx/go-mpicx/internal/errchan"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// network is the machines of a communicator and the messages between them,
// which stay in order between two ranks and go nowhere by themselves.
type network struct {
	name     string                  // of a duplicate, and a space
	copies   []*network              // with its duplicates, itself the first; nil: none
	machines []*blackchannel.Machine // nil: the rank has not made its side
	queues   map[edge][]packet
	busy     []edge // those with messages, in a fixed order of arrival
	attends  []bool // joins as soon as it can
	crashed  []bool

	depth    []int // longest chain of messages that led to this rank's state
	sent     []int // messages of each rank
	carried  []int // bytes of reports' data in them
	verdicts [][]*errchan.Verdict
	noticed  [][]errchan.Noticed
	trace    func(format string, args ...any) // nil: silent
}

type edge struct{ from, to int }

type packet struct {
	msg   *blackchannel.Message
	depth int
}

func newNetwork(n int) *network {
	net := &network{
		queues: make(map[edge][]packet), attends: make([]bool, n), crashed: make([]bool, n),
		depth: make([]int, n), sent: make([]int, n), carried: make([]int, n),
		verdicts: make([][]*errchan.Verdict, n), noticed: make([][]errchan.Noticed, n),
	}
	for r := range n {
		net.machines = append(net.machines, blackchannel.NewMachine(r, n))
	}
	return net
}

// family returns rank r's machine of the first communicator, which takes and sends the messages of
// its duplicates too.
func (net *network) family(r int) *blackchannel.Machine {
	if net.copies != nil {
		return net.copies[0].machines[r]
	}
	return net.machines[r]
}

// carry takes rank r's output.
func (net *network) carry(r int) {
	first := net.family(r)
	for again := true; again; {
		again = false
		for o, ok := first.Next(); ok; o, ok = first.Next() {
			net := net.about(r, o)
			switch {
			case o.Message != nil:
				e := edge{r, o.To}
				if len(net.queues[e]) == 0 {
					net.busy = append(net.busy, e)
				}
				net.queues[e] = append(net.queues[e], packet{o.Message, net.depth[r] + 1})
				net.sent[r]++
				net.carried[r] += dataIn(o.Message)
				net.tracef("%d->%d %v\n", r, o.To, messageText(o.Message))
			case o.Noticed != nil:
				net.noticed[r] = append(net.noticed[r], *o.Noticed)
				net.tracef("%d: noticed round %d from %d%s\n", r, o.Noticed.Round, o.Noticed.By, corruptText(o.Noticed.Corrupt))
			case o.Released:
				net.tracef("%d: released\n", r)
			case o.Asked != nil:
				net.tracef("%d: asked to stop: %s\n", r, o.Asked)
			default:
				net.verdicts[r] = append(net.verdicts[r], o.Resolved)
				net.tracef("%d: resolved %v\n", r, verdictText(o.Resolved))
			}
			again = true
		}
		if net.attends[r] {
			net.machines[r].Join()
		}
	}
}

// about returns the communicator that an output of rank r is about.
func (net *network) about(r int, o blackchannel.Output) *network {
	for i, other := range net.copies {
		if o.Message != nil && o.Message.Comm == uint64(i) || o.Message == nil && other.machines[r] == o.Of {
			return other
		}
	}
	return net
}

func (net *network) raise(r int, data string, corrupt bool) {
	net.machines[r].Raise([]byte(data), corrupt)
	net.carry(r)
}

func (net *network) join(r int) {
	net.machines[r].Join()
	net.carry(r)
}

// deliver hands over the oldest message of edge e.
func (net *network) deliver(e edge) error {
	p := net.queues[e][0]
	net.queues[e] = net.queues[e][1:]
	if len(net.queues[e]) == 0 {
		i := slices.Index(net.busy, e)
		net.busy = slices.Delete(net.busy, i, i+1)
	}
	if net.crashed[e.to] {
		net.tracef("%d->%d %v: lost\n", e.from, e.to, messageText(p.msg))
		return nil
	}
	net.depth[e.to] = max(net.depth[e.to], p.depth)
	if err := net.family(e.to).Step(e.from, p.msg); err != nil {
		return err
	}
	net.carry(e.to)
	return nil
}

// tracef writes a line of the trace, if there is one.
func (net *network) tracef(format string, args ...any) {
	if net.trace != nil {
		net.trace(net.name+format, args...)
	}
}

// dataIn is how many bytes of reports' data a message has.
func dataIn(m *blackchannel.Message) (bytes int) {
	reports := m.Reports
	if m.Kind == blackchannel.Verdict {
		reports = m.Verdict.Reports
	}
	for _, r := range reports {
		bytes += len(r.Data)
	}
	return bytes
}

func corruptText(c bool) string {
	if c {
		return " corrupt"
	}
	return ""
}

// messageText is a message for people.
func messageText(m *blackchannel.Message) string {
	switch m.Kind {
	case blackchannel.Closed:
		return "closed"
	case blackchannel.Notice:
		return fmt.Sprintf("notice %d%s", m.Round, corruptText(m.Corrupt))
	case blackchannel.Stop:
		return fmt.Sprintf("stop %s", m.Request)
	case blackchannel.Verdict:
		return "verdict " + verdictText(m.Verdict)
	}
	return fmt.Sprintf("%v %d%s", m.Kind, m.Round, reportsText(m.Reports))
}

// verdictText is a verdict for people.
func verdictText(v *errchan.Verdict) string {
	return fmt.Sprintf("%d%s%s", v.Round, corruptText(v.Corrupt), reportsText(v.Reports))
}

func reportsText(reports []errchan.Report) string {
	var b strings.Builder
	for _, r := range reports {
		mark := ""
		if r.Corrupt {
			mark = "!"
		}
		fmt.Fprintf(&b, " %d:%s%s", r.Rank, r.Data, mark)
	}
	return b.String()
}
