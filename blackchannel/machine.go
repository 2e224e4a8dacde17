package blackchannel

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/mpicx/go-mpicx/internal/binomial"
	"github.com/mpicx/go-mpicx/internal/errchan"
)

// A Kind says which wave a Message belongs to.
type Kind byte

const (
	// Notice says that a round is open.
	Notice Kind = iota + 1
	// Reports has the reports of the sender's subtree. The first Reports of a round says that
	// the whole subtree has joined. Others may follow, with reports that were raised later.
	Reports
	// Verdict has the verdict, and says that the round is over.
	Verdict
	// Stop has a request to stop. It belongs to no round.
	Stop
	// Closed says that all ranks of a child's subtree have released the communicator or, from the
	// parent, that all ranks have. It belongs to no round.
	Closed
)

func (k Kind) String() string {
	if k < Notice || k > Closed {
		return fmt.Sprintf("Kind(%d)", byte(k))
	}
	return [...]string{"notice", "reports", "verdict", "stop", "closed"}[k-Notice]
}

// A Message is sent from a rank to a neighbour in the tree. It is not changed after it is sent.
type Message struct {
	Kind    Kind
	Comm    uint64 // the id of the duplicate that it is about; 0: none
	Round   uint64
	Corrupt bool             // of a notice: the verdict will be final
	Reports []errchan.Report // of reports
	Verdict *errchan.Verdict // of a verdict
	Request []byte           // of a stop

	encoded []byte // as received, or as first sent
}

// latest are the last messages that bare has made.
var latest [Closed + 1]atomic.Pointer[Message]

// bare returns a notice, Reports without a report, or Closed. All ranks of a process make the same
// ones, so they share them.
func bare(kind Kind, comm, round uint64, corrupt bool) *Message {
	m := latest[kind].Load()
	if m == nil || m.Comm != comm || m.Round != round || m.Corrupt != corrupt {
		m = &Message{Kind: kind, Comm: comm, Round: round, Corrupt: corrupt}
		m.encoded = Encode(m)
		latest[kind].Store(m)
	}
	return m
}

// An Output is an action that a Machine asks its caller to carry out: to send a message, or to tell
// the client. One of Message, Noticed, Resolved, Asked and Released is not zero.
type Output struct {
	Of       *Machine // whose output it is: see copies.go
	To       int      // the rank to which Message is sent
	Message  *Message
	Noticed  *errchan.Noticed // tell Of's client that a round is open
	Resolved *errchan.Verdict // tell Of's client the verdict
	Asked    []byte           // tell Of's client of a request to stop
	Released bool             // tell Of's client that all ranks have released the communicator
}

// A Machine runs the protocol at one rank. It has no I/O and no clock. The caller feeds it the
// rank's decisions by Raise and Join, and messages by Step, and after each carries out the outputs
// that Next returns. Its methods are not safe for concurrent use. The machines of a communicator
// and its duplicates take each other's messages, and return each other's outputs: see copies.go.
//
// Rounds are numbered from 0. In a round a rank gets messages of that round only, with
// one exception. Reports that a rank raises after it has joined follow its first
// reports up the tree, and may reach a rank that the verdict has passed already. That
// rank drops them. Their origin finds them missing from the verdict, and raises them
// again in the next round.
type Machine struct {
	rank, size int
	parent     int // of the root: itself, which sends it nothing
	children   int // number of children

	round   uint64           // the number of the open round, or of the next
	open    bool             // a rank has raised an error
	fatal   bool             // a rank has unwound; implies open
	joined  bool             // this rank has joined the round; implies open
	sent    bool             // reports have been sent to the parent: the whole subtree has joined
	gone    bool             // this rank has unwound, or never makes the duplicate: the machine joins every round by itself
	final   bool             // the last verdict was a corruption: no round follows
	made    bool             // this rank has made the communicator
	asked   bool             // this rank has had a request to stop
	heard   uint32           // bit k: child k's reports have come
	reports []errchan.Report // reports to send to the parent; at the root, for the verdict
	mine    []errchan.Report // reports raised here that no verdict has, oldest first

	released bool   // this rank has released the communicator: see Release
	below    uint32 // bit k: all ranks of child k's subtree have
	ended    bool   // so have all of this rank's subtree, and the parent was told

	*copies
	id      uint64   // of a duplicate; 0: it is none
	held    []Output // for the client, until the communicator is made
	channel *Channel // used by its driver only
}

// NewMachine returns the machine of one of size ranks.
func NewMachine(rank, size int) *Machine {
	c := new(copies)
	c.first = c.newMachine(0, rank, size)
	c.first.made = true
	return c.first
}

func (c *copies) newMachine(id uint64, rank, size int) *Machine {
	return &Machine{copies: c, id: id, rank: rank, size: size,
		parent: binomial.Parent(rank), children: binomial.Children(rank, size)}
}

// tell tells the client, as soon as there is one.
func (m *Machine) tell(o Output) {
	o.Of = m
	if m.made {
		m.out.Push(o)
	} else {
		m.held = append(m.held, o)
	}
}

// Raise adds a report of this rank, and joins. It does nothing after a final verdict.
func (m *Machine) Raise(data []byte, corrupt bool) {
	if m.final {
		return
	}
	r := errchan.Report{Rank: m.rank, Corrupt: corrupt, Data: data}
	m.mine = append(m.mine, r)
	m.gone = m.gone || corrupt
	m.raise(r)
}

func (m *Machine) raise(reports ...errchan.Report) {
	// joined is set before notice looks whether the subtree is complete: if it is, the reports
	// follow at once, and the parent needs no notice.
	m.joined = true
	m.notice(m.rank, errchan.AnyCorrupt(reports))
	m.collect(reports)
}

// Join joins the open round, if there is one.
func (m *Machine) Join() {
	if m.open && !m.joined {
		m.joined = true
		m.collect(nil)
	}
}

// Ask floods the tree with a request to stop, unless this rank has had one.
func (m *Machine) Ask(request []byte) {
	m.ask(m.rank, &Message{Kind: Stop, Comm: m.id, Request: request})
}

func (m *Machine) ask(from int, msg *Message) {
	if m.asked {
		return
	}
	m.asked = true
	m.tell(Output{Asked: msg.Request})
	m.flood(from, msg, false)
}

// Step takes a message of a neighbour, for this machine or another of its copies. It returns an
// error for a message that no neighbour sends in this state.
func (m *Machine) Step(from int, msg *Message) error {
	child := from > m.rank && from < m.size && binomial.Parent(from) == m.rank
	if !child && from != m.parent || from == m.rank {
		return m.unexpected(from, msg, "the sender is no neighbour")
	}
	if m = m.addressee(msg); m == nil {
		return nil
	}
	switch {
	case msg.Kind == Stop:
		m.ask(from, msg)
		return nil
	case msg.Kind == Closed && child:
		m.below |= 1 << binomial.ChildIndex(from)
		m.end()
		return nil
	case msg.Kind == Closed && m.isReleased():
		m.endAll()
		return nil
	}
	// Neighbours that have not yet got the last verdict may still send.
	if m.final {
		return nil // the other ranks will get the verdict soon
	}
	if msg.Round != m.round {
		if msg.Kind == Reports && child && msg.Round+1 == m.round {
			return nil // raised after the child joined: see Machine
		}
		return m.unexpected(from, msg, "the round is another")
	}
	switch {
	case msg.Kind == Notice:
		m.notice(from, msg.Corrupt)
		if m.gone {
			m.Join()
		}
	case msg.Kind == Reports && child:
		// The notice comes first, because a child whose subtree is complete sends reports instead
		// of one. The client has to hear of the round before its verdict.
		m.heard |= 1 << binomial.ChildIndex(from)
		m.notice(from, errchan.AnyCorrupt(msg.Reports))
		if m.gone {
			m.joined = true
		}
		m.collect(msg.Reports)
	case msg.Kind == Verdict && !child && m.sent:
		m.resolve(msg)
	default:
		return m.unexpected(from, msg, "no rank sends it in this direction now")
	}
	return nil
}

func (m *Machine) unexpected(from int, msg *Message, why string) error {
	return fmt.Errorf("unexpected %v of round %d from rank %d: %s (rank %d of %d, round %d, open %t)",
		msg.Kind, msg.Round, from, why, m.rank, m.size, m.round, m.open)
}

// notice opens the round and floods the tree, once. It floods the tree once more if the first
// corruption comes when the round is open already.
func (m *Machine) notice(from int, corrupt bool) {
	if m.open && (m.fatal || !corrupt) {
		return
	}
	m.open, m.fatal = true, corrupt
	m.tell(Output{Noticed: &errchan.Noticed{Round: m.round, By: from, Corrupt: corrupt}})
	// The parent needs no notice if the subtree is complete: then reports are sent to it now, or
	// this notice comes from it.
	m.flood(from, bare(Notice, m.id, m.round, corrupt), m.complete())
}

// flood sends a message to all neighbours except the one that it is from, and except the parent if
// spareParent is set. The neighbour with the most ranks behind it comes first, because the longest
// way leads through it. So the last rank has the message after one step for each edge on its way.
func (m *Machine) flood(from int, msg *Message, spareParent bool) {
	if m.rank > 0 && m.parent != from && !spareParent {
		m.send(m.parent, msg)
	}
	for k := m.children - 1; k >= 0; k-- {
		if to := binomial.Child(m.rank, k); to != from {
			m.send(to, msg)
		}
	}
}

// complete says whether this rank's subtree has joined.
func (m *Machine) complete() bool { return m.joined && m.heard == 1<<m.children-1 }

// collect adds reports to the round. If the subtree is complete, it sends them to the parent or, at
// the root, ends the round.
func (m *Machine) collect(reports []errchan.Report) {
	m.reports = append(m.reports, reports...)
	switch {
	case !m.complete():
	case m.rank == 0:
		slices.SortStableFunc(m.reports, func(a, b errchan.Report) int { return a.Rank - b.Rank })
		m.resolve(&Message{Kind: Verdict, Comm: m.id, Round: m.round,
			Verdict: &errchan.Verdict{Round: m.round, Corrupt: errchan.AnyCorrupt(m.reports), Reports: m.reports}})
	case !m.sent || len(m.reports) > 0:
		msg := bare(Reports, m.id, m.round, false)
		if len(m.reports) > 0 {
			msg = &Message{Kind: Reports, Comm: m.id, Round: m.round, Reports: m.reports}
		}
		m.sent = true
		m.send(m.parent, msg)
		m.reports = nil
	}
}

// resolve ends the round, and begins the next if this rank has more to report.
func (m *Machine) resolve(msg *Message) {
	v := msg.Verdict
	// The verdict is passed on before the client is told. Other ranks need not wait for what the
	// client does.
	m.flood(m.parent, msg, false)
	m.tell(Output{Resolved: v})
	// The verdict has the oldest of this rank's reports, since they go up in their order. The
	// others came too late, and open the next round (P5). The bound protects from a verdict with
	// reports that this rank has not raised.
	m.mine = m.mine[min(len(v.Of(m.rank)), len(m.mine)):]
	m.round++
	m.open, m.fatal, m.joined, m.sent, m.heard, m.reports = false, false, false, false, 0, nil
	if m.final = v.Corrupt; m.final {
		m.mine = nil
	} else if len(m.mine) > 0 {
		m.raise(m.mine...)
	}
	if m.end(); m.first.released {
		m.first.end()
	}
}

func (m *Machine) send(to int, msg *Message) {
	m.out.Push(Output{Of: m, To: to, Message: msg})
}

// Waiting says what the open round waits for. It returns "" if no round is open.
func (m *Machine) Waiting() string {
	if !m.open {
		return ""
	}
	var missing []string
	if !m.joined {
		missing = append(missing, "this rank to join")
	}
	for k := range m.children {
		if m.heard&(1<<k) == 0 {
			first := binomial.Child(m.rank, k)
			missing = append(missing, errchan.OneOf(first, min(first+1<<k, m.size)-1))
		}
	}
	if m.sent {
		missing = append(missing, "the verdict")
	}
	return fmt.Sprintf("error round %d waits for %s", m.round, strings.Join(missing, ", "))
}
