package ulfmbackend

import (
	"fmt"
	"maps"
	"slices"

	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// A Machine runs the protocols at one rank, for one communicator. It has no I/O and no clock. The
// caller feeds it the rank's decisions, its messages and the deaths that it learns of, and carries
// out the outputs that Next returns. Its methods are not safe for concurrent use.
//
// The caller has the duties of a client of [errchan.ULFM], and these: It delivers the messages from
// one rank to another in order. Messages from a dead rank may come after its death, or be lost with
// all that follow them. It tells every living rank of every death eventually, and never of the
// death of a living rank. The machine never joins a round by itself.
type Machine struct {
	// What Advance reads comes first, on as few cache lines as possible: an error of a communicator
	// may move thousands that are derived from it.
	frozen   bool                        // only errors are decided here
	left     bool                        // the program has ended: this rank proposes nothing more of its own
	epoch    transport.Epoch             // of agreements that programs ask for
	streams  [streams]*stream            // nil: nothing has come
	open     []errchan.Agreement         // agreements of past epochs that a later verdict may complete
	past     []errchan.Settled           // ends of agreements: see note; its elements are never changed
	proposed map[errchan.Agreement]Value // this rank's proposals to agreements after the current one
	later    []received                  // messages from ranks that are ahead: in their epochs, agreements or votes
	out      errchan.Queue[Output]
	notices  flood // of the notice of the open round
	revokes  flood // of the notice that the communicator is revoked

	tree
	id    uint64 // of the communicator: see transport.Name
	early flood  // of the notice of the next round, if other ranks have begun it; not sent yet
	stops *flood // of a request to stop; nil: none has come
	votes *votes // of an MPI library; nil: the protocols are those of this package

	revoked   bool // the client has been told that the communicator is revoked
	abandoned bool // the program creates no more communicators
	released  bool // all ranks have closed the communicator

	mine      []errchan.Report // reports of this rank that are in no verdict yet; joining puts them into a round
	condemned bool             // the client has been told that the open round's verdict will be final
	untold    bool             // the client has not been told the last verdict: it can't join the next round
	leaving   bool             // this rank counts as dead in the next round
	missed    []int            // dead ranks that this rank needs, so the verdict has to be final; ascending
	final     bool             // the verdict was a corruption
	reported  []int            // dead ranks that the client was told of, ascending
	gone      []int            // ranks that a decision counted as dead, so the program knows; ascending
}

// received is a message that is kept for later.
type received struct {
	from int
	msg  *Message
}

// NewMachine returns the machine of one of size ranks, in epoch e. The id identifies
// its communicator in the verdicts of those it is derived from.
func NewMachine(rank, size int, id uint64, e transport.Epoch) *Machine {
	return &Machine{tree: newTree(rank, size), id: id, epoch: e}
}

// Next returns the next output, and whether there is one.
func (m *Machine) Next() (Output, bool) {
	if o, ok := m.out.Pop(); ok || m.released {
		return o, ok
	}
	if to := m.notices.pull(&m.tree); to >= 0 {
		return Output{To: to, Message: m.notices.notice}, true
	}
	if to := m.revokes.pull(&m.tree); to >= 0 {
		return Output{To: to, Message: m.revokes.notice}, true
	}
	if m.stops != nil {
		if to := m.stops.pull(&m.tree); to >= 0 {
			return Output{To: to, Message: m.stops.notice}, true
		}
	}
	if up := m.follow(); up != nil {
		return Output{To: m.up, Message: up}, true
	}
	return Output{}, false
}

// Idle says whether Next would return no output. After a death it may return false even if Next
// would return none.
func (m *Machine) Idle() bool {
	s := m.streams[Errors]
	return m.out.Empty() && (s == nil || len(s.late) == 0) && m.notices.done(&m.tree) && m.revokes.done(&m.tree) && (m.stops == nil || m.stops.done(&m.tree))
}

// Raise adds a report of this rank to the round, opens the round if none is open, and
// joins. A report that comes too late for the round, or before the caller has handled
// the last verdict, goes to the next round, which the caller joins when it is noticed.
// Raise does nothing after a final verdict.
func (m *Machine) Raise(data []byte, corrupt bool, settled []errchan.Settled) {
	if m.final {
		return
	}
	m.mine = append(slices.Clip(m.mine), errchan.Report{Rank: m.rank, Corrupt: corrupt, Data: data})
	m.notice(m.rank, corrupt)
	if m.stream(Errors).joined || settled != nil && !m.untold {
		m.join(settled)
	}
}

// Unwind is Raise with corrupt, of a rank that is about to Leave. The rank counts as
// dead.
func (m *Machine) Unwind(data []byte, settled []errchan.Settled) {
	m.leaving = true
	m.Raise(data, true, settled)
}

// Lose opens a round because of the dead. Ranks that have left may be among them.
func (m *Machine) Lose(dead []int) {
	if !m.final && len(dead) > 0 {
		m.missed = union(m.missed, dead) // the round under way may be decided without them
		m.notice(m.rank, true)
	}
}

// Join joins the open round, if there is one. Settled is what Freeze has returned for
// the communicator and those derived from it.
func (m *Machine) Join(settled []errchan.Settled) {
	if m.notices.open && !m.untold && !m.stream(Errors).joined {
		m.join(settled)
	}
}

// join contributes this rank's reports to the round and, if this rank has not joined it before, the
// settled agreements.
func (m *Machine) join(settled []errchan.Settled) {
	v := m.reports()
	if !m.stream(Errors).joined {
		v.Settled = inOrder(slices.Clone(settled), compareSettled, prefer)
	}
	m.contribute(Errors, v)
}

// Told says that the client is being told the last verdict.
func (m *Machine) Told() { m.untold = false }

// reports returns what this rank contributes to a round: its reports that are in no verdict yet. A
// rank that is leaving counts itself among the dead.
func (m *Machine) reports() Value {
	v := neutral
	v.Reports = slices.Clone(m.mine)
	for i := range v.Reports {
		v.Reports[i].Index = i
	}
	if m.leaving {
		v.Dead = []int{m.rank}
	}
	return v
}

// Revoke revokes the communicator.
func (m *Machine) Revoke() { m.revoke(m.rank, &Message{Kind: Revoke, Origin: m.rank}) }

func (m *Machine) revoke(by int, notice *Message) {
	m.revokes.heard(&m.tree, by, false)
	switch {
	case m.revoked:
		return
	case m.votes != nil:
		m.out.Push(Output{Revoke: true})
	default:
		m.revokes.begin(notice)
	}
	m.Revoked(by)
}

// Revoked says that the communicator is revoked, as this rank has learned from a rank, or from
// its library: then by is this rank.
func (m *Machine) Revoked(by int) {
	if !m.revoked {
		m.revoked = true
		m.out.Push(Output{Revoked: &Told{by}})
	}
}

// Ask floods a request to stop, unless this rank has had one.
func (m *Machine) Ask(request []byte) {
	m.ask(m.rank, &Message{Kind: Stop, Origin: m.rank, Request: request})
}

func (m *Machine) ask(from int, msg *Message) {
	if m.stops == nil {
		m.stops = new(flood)
		m.stops.begin(msg)
		m.out.Push(Output{Asked: msg.Request})
	}
	m.stops.heard(&m.tree, from, false)
}

// Propose makes this rank's proposal to an agreement.
func (m *Machine) Propose(id errchan.Agreement, v Value) {
	k := streamOf(id)
	switch s := m.stream(k); {
	case m.left, m.abandoned && k == Creations:
	case id == s.id:
		m.contribute(k, v)
	case id.Epoch == s.id.Epoch && id.Seq > s.id.Seq:
		if m.proposed == nil {
			m.proposed = make(map[errchan.Agreement]Value)
		}
		m.proposed[id] = v
	}
}

// Abandon says that the program creates no more communicators, and does not wait for
// those under way.
func (m *Machine) Abandon() {
	m.abandoned = true
	maps.DeleteFunc(m.proposed, func(id errchan.Agreement, _ Value) bool { return id.Creates })
}

// Died tells the machine that a process has died.
func (m *Machine) Died(rank int) {
	before := m.up
	if !m.markDead(rank) {
		return
	}
	m.report(rank)
	if m.up != before {
		m.reparent()
	}
	if m.notices.open && m.condemns() {
		m.tell(m.rank, true)
	}
	m.retry()
}

// retry takes the steps that a death or a child's message may have made possible.
func (m *Machine) retry() {
	for k := range streams {
		m.try(k)
	}
	m.concede()
}

// report tells the client that a rank is dead, once.
func (m *Machine) report(rank int) {
	if !contains(m.reported, rank) {
		m.reported = union(m.reported, []int{rank})
		m.out.Push(Output{Died: &Told{rank}})
	}
}

// Close says that the program has closed the communicator. As far as this rank knows, no round is
// open there. The rank raises nothing more on it, proposes nothing, and waits for nothing.
func (m *Machine) Close() {
	if !m.released {
		m.contribute(Closings, neutral)
	}
}

// Leave says that the rank's program has ended. The rank still joins rounds.
func (m *Machine) Leave() {
	m.left = true
	m.proposed = nil
	m.standIn()
}

// standIn makes an empty proposal to each agreement if the program has ended: this rank counts
// as dead there.
func (m *Machine) standIn() {
	if !m.left || m.released {
		return
	}
	for _, k := range []Stream{Repairs, Creations} {
		if !m.stream(k).joined {
			v := neutral
			v.Dead = []int{m.rank}
			m.contribute(k, v)
		}
	}
}

// Step takes a message. It returns an error for a message that no rank sends.
func (m *Machine) Step(from int, msg *Message) error {
	if from < 0 || from >= m.size || from == m.rank {
		return fmt.Errorf("%v from rank %d, expected one of %d others", msg.Kind, from, m.size-1)
	}
	switch round := m.stream(Errors).id.Seq; {
	case msg.Kind == Revoke:
		m.revoke(from, msg)
	case msg.Kind == Stop:
		m.ask(from, msg)
	case msg.Kind == Notice && msg.ID.Seq == round:
		m.noticed(from, msg)
	case msg.Kind == Notice && msg.ID.Seq == round+1:
		m.expect(from, msg)
	case msg.Kind == Notice && msg.ID.Seq < round:
		// The round is over.
	case (msg.Kind == Up || msg.Kind == Decided) && (msg.Stream != Errors || msg.ID.Seq <= round || m.isVoted(Errors)):
		m.call(from, msg)
	default:
		return fmt.Errorf("unexpected %v %d from rank %d (rank %d of %d, round %d)",
			msg.Kind, msg.ID.Seq, from, m.rank, m.size, round)
	}
	return nil
}

// call takes a message of an agreement. It keeps a message of a later epoch until then.
func (m *Machine) call(from int, msg *Message) {
	switch s := m.stream(msg.Stream); {
	case m.isVoted(msg.Stream):
		m.takeVoted(from, msg)
	case msg.ID.Epoch.Stale(s.id.Epoch):
	case msg.ID.Epoch != s.id.Epoch:
		m.later = append(m.later, received{from, msg})
	case msg.Kind == Up:
		m.heardUp(from, msg)
	default:
		m.heardDecision(from, msg)
	}
}

// takeLater takes the messages that were kept for later, some of which may be kept again.
func (m *Machine) takeLater() {
	later := m.later
	m.later = nil
	for _, r := range later {
		m.call(r.from, r.msg)
	}
}

// notice opens the round if this rank has learned of it from a message other than a notice, or
// has raised the error itself.
func (m *Machine) notice(from int, corrupt bool) {
	m.notices.heard(&m.tree, from, corrupt)
	if m.notices.isNews(corrupt) && !m.final {
		m.noticed(from, &Message{Kind: Notice, ID: m.stream(Errors).id, Origin: from, Corrupt: corrupt})
	}
}

// noticed opens the round, or marks it corrupt, and starts the flood.
func (m *Machine) noticed(from int, msg *Message) {
	m.notices.heard(&m.tree, from, msg.Corrupt)
	if !m.notices.isNews(msg.Corrupt) || m.final {
		return
	}
	m.notices.begin(msg)
	m.tell(from, msg.Corrupt || m.condemns())
}

// tell tells the client that the round is open, and once more if it turns out that the
// verdict will be final.
func (m *Machine) tell(from int, corrupt bool) {
	if m.condemned {
		return
	}
	m.condemned = corrupt
	m.out.Push(Output{Noticed: &errchan.Noticed{Round: m.stream(Errors).id.Seq, By: from, Corrupt: corrupt}})
}

// condemns says whether the verdict of the round under way will be final because of a death: it
// needs this rank's proposal, which will contain the dead that this rank knows of. No notice
// says so, because all ranks that have not joined learn of the death themselves.
func (m *Machine) condemns() bool { return len(m.dead) > 0 && !m.stream(Errors).joined }

// expect notes that the next round is open elsewhere.
func (m *Machine) expect(from int, msg *Message) {
	m.early.heard(&m.tree, from, msg.Corrupt)
	if m.early.isNews(msg.Corrupt) {
		m.early.open, m.early.notice = true, msg
	}
}

// resolved tells the client the verdict, and begins the next round if there is
// more to resolve.
func (m *Machine) resolved(v *errchan.Verdict) {
	m.mine = m.mine[min(len(v.Of(m.rank)), len(m.mine)):]
	for _, r := range v.Dead {
		if r != m.rank || !m.leaving && !m.left { // a rank that leaves still takes part in rounds
			m.report(r)
		}
	}
	m.untold, m.condemned = true, false
	m.out.Push(Output{Resolved: v})
	early := m.early
	m.notices, m.early = flood{told: early.told, fatal: early.fatal}, flood{}
	switch m.final = v.Corrupt; {
	case m.final:
		m.mine = nil
	case len(m.mine) > 0 || len(m.missed) > 0 || early.open:
		m.notice(m.rank, errchan.AnyCorrupt(m.mine) || len(m.missed) > 0 || early.corrupt())
	}
}

func (m *Machine) send(to int, msg *Message) { m.out.Push(Output{To: to, Message: msg}) }
