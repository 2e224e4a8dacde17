package ledger

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/errchan"
)

// TestTable compares the ledger with the tables of docs/errors.md: it is brought into
// each state by a shortest sequence, and fed each event. Rewrite them with go test
// -run TestTable -rewrite, and read the difference.
func TestTable(t *testing.T) {
	const page, begin, end = "../../docs/errors.md", "<!-- begin: go test ./internal/ledger -run TestTable -rewrite -->\n", "<!-- end -->"
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	before, rest, ok := bytes.Cut(text, []byte(begin))
	require.True(t, ok, "no %q", begin)
	table, after, ok := bytes.Cut(rest, []byte(end))
	require.True(t, ok, "no %q", end)
	made := tables(t)
	if flag.Lookup("rewrite").Value.String() == "true" {
		require.NoError(t, os.WriteFile(page, slices.Concat(before, []byte(begin), []byte(made), []byte(end), after), 0o644))
		return
	}
	require.Equal(t, string(table), made)
}

// A subject is a rank with the communicator that a table is about: child, derived
// from world, with a Guard and inside of it a Try that are running.
type subject struct {
	*testRank
	child, world *Comm
	try          *Scope
	vote         *Vote
	left         bool
	note         string // what the event has returned
}

func newSubject() *subject {
	s := &subject{testRank: newTestRank()}
	s.world = s.make("world", nil, nil, nil)
	s.child = s.make("child", s.world, s.world, nil)
	s.try = s.child.Open(s.child.Open(nil, true, "Guard"), false, "Try")
	return s
}

func (s *subject) notice()   { s.child.Noticed(s.child.round, 1, false) }
func (s *subject) fatal()    { s.child.Noticed(s.child.round, 1, true) }
func (s *subject) joined()   { s.notice(); s.child.join() }
func (s *subject) raise()    { s.child.Raise(&Raised{Data: []byte("own")}); s.notice() }
func (s *subject) unwind()   { s.child.Raise(&Raised{Data: []byte("own"), Corrupt: true}); s.notice() }
func (s *subject) settling() { s.joined(); s.resolve(s.child, false) }
func (s *subject) moving()   { s.settling(); s.child.Settled() }
func (s *subject) untold()   { s.moving(); s.child.Moved() }
func (s *subject) corrupted() {
	s.joined()
	s.resolve(s.child, true)
	s.child.Settled()
	s.child.Moved()
}
func (s *subject) frozen() { s.world.Noticed(0, 1, false); s.world.join() }
func (s *subject) voting() { s.vote = s.child.Ask("vote") }
func (s *subject) holding() {
	s.voting()
	s.vote.Confirm()
}

// resolve has c's round end with an error of rank 1, and those of this rank.
func (s *subject) resolve(c *Comm, corrupt bool) {
	reports := []errchan.Report{{Rank: 1, Data: []byte("peer"), Corrupt: corrupt}}
	for _, r := range c.raised {
		reports = append(reports, errchan.Report{Data: r.Data, Corrupt: r.Corrupt})
	}
	c.Resolved(c.testVerdict(reports, nil), 0)
}

// parentEnds has a round of the world begin and end.
func (s *subject) parentEnds(corrupt bool) {
	if !s.world.open {
		s.world.Noticed(s.world.round, 1, corrupt)
	}
	s.world.join()
	s.resolve(s.world, corrupt)
	s.world.Settled()
	s.world.Moved()
}

// tableStates are the rows, each with a shortest way into it.
var tableStates = []struct {
	name string
	into func(*subject)
}{
	{"quiet", func(*subject) {}},
	{"waiting", func(s *subject) { s.enter(s.child) }},
	{"noticed", (*subject).notice},
	{"noticed + fatal", (*subject).fatal},
	{"joined", (*subject).joined},
	{"raised", (*subject).raise},
	{"unwinding", (*subject).unwind},
	{"losing", func(s *subject) { s.child.Lose() }},
	{"settling", (*subject).settling},
	{"moving", (*subject).moving},
	{"untold", (*subject).untold},
	{"corrupted", (*subject).corrupted},
	{"known", func(s *subject) { s.corrupted(); s.child.Look(Take) }},
	{"revoking", func(s *subject) { s.child.Revoked(1) }},
	{"revoked", func(s *subject) { s.child.Revoked(1); s.child.RevokeDone() }},
	{"closed", func(s *subject) { s.child.Close() }},
	{"frozen", (*subject).frozen},
	{"voting", (*subject).voting},
	{"holding", (*subject).holding},
	{"held", func(s *subject) { s.holding(); s.child.Raise(&Raised{Data: []byte("own")}) }},
	{"left", func(s *subject) { s.Leave(); s.left = true }},
	{"dead", func(s *subject) { s.Die() }},
}

// An event is a column: what is fed, and in which states it cannot be, because.
type event struct {
	name  string
	feed  func(*subject)
	never func(*subject) string
}

func only(can func(*subject) bool, because string) func(*subject) string {
	return func(s *subject) string {
		if can(s) {
			return ""
		}
		return because
	}
}

func noNotice(s *subject) string {
	switch {
	case s.child.corrupted != nil:
		return "no round follows a corruption"
	case slices.Contains(s.owed, s.child), s.child.joined && len(s.child.raised) == 0 && s.child.settling == nil:
		return "the channel tells of a round once"
	}
	return ""
}

func noCorruptNotice(s *subject) string {
	switch {
	case s.child.corrupted != nil:
		return "no round follows a corruption"
	case s.child.fatal && s.child.settling == nil:
		return "the channel tells of a corruption once"
	}
	return ""
}

func noVerdict(s *subject) string {
	switch {
	case s.child.corrupted != nil:
		return "no round follows a corruption"
	case s.child.settling != nil:
		return "the next round is noticed first"
	case !s.child.open:
		return "no round is open"
	case !s.child.joined:
		return "this rank has not joined"
	}
	return ""
}

var tableEvents = []struct {
	title  string
	events []event
}{
	{"The error channel", []event{
		{"`Noticed`", (*subject).notice, noNotice},
		{"`Noticed`, corrupt", (*subject).fatal, noCorruptNotice},
		{"`Resolved`", func(s *subject) { s.resolve(s.child, false) }, noVerdict},
		{"`Resolved`, corrupt", func(s *subject) { s.resolve(s.child, true) }, noVerdict},
	}},
	{"The driver, which has carried out `Complete` and `Advance`", []event{
		{"`Settled`", func(s *subject) { s.child.Settled() }, only(func(s *subject) bool { return s.child.settling != nil }, "no `Complete` is under way")},
		{"`Moved`", func(s *subject) { s.child.Moved() }, only(func(s *subject) bool {
			return s.child.moving > 0 && s.child.settling == nil && !s.child.revoked
		}, "no `Advance` is under way")},
	}},
	{"The parent", []event{
		{"noticed", func(s *subject) { s.world.Noticed(0, 1, false) }, only(func(s *subject) bool { return !s.world.open }, "the channel tells of a round once")},
		{"joined", func(s *subject) {
			if !s.world.open {
				s.world.Noticed(0, 1, false)
			}
			s.world.join()
		}, only(func(s *subject) bool { return !s.world.joined }, "this rank has joined")},
		{"propagated", func(s *subject) { s.parentEnds(false) }, nil},
		{"corrupted", func(s *subject) { s.parentEnds(true) }, nil},
	}},
	{"The program waits and looks", []event{
		{"`BeginWait`", func(s *subject) { s.enter(s.child) }, nil},
		{"`EndWait`", func(s *subject) { s.EndWait(true) }, only(func(s *subject) bool { return s.inside.Load() != nil }, "it does not wait")},
		{"`Watch`", func(s *subject) {
			if s.Watch(1) {
				s.Answer()
			}
		}, nil},
		{"`Look` (a Wait's)", func(s *subject) { s.note = findingWord(s.child.Look(Take)) }, nil},
		{"`Look` to repair", func(s *subject) { s.note = findingWord(s.child.Look(TakeToRepair)) }, nil},
		{"`Err`", func(s *subject) {
			f, e := s.err(s.child)
			s.note = findingWord(f, e, false)
		}, nil},
	}},
	{"The program raises", []event{
		{"`Raise`", func(s *subject) { s.raised(false) }, nil},
		{"`Raise`, corrupt", func(s *subject) { s.raised(true) }, nil},
		{"`Lose`", func(s *subject) { s.child.Lose() }, nil},
	}},
	{"Scopes", []event{
		{"a Try begins", func(s *subject) { s.child.Open(nil, false, "new Try") }, nil},
		{"a Guard begins", func(s *subject) { s.child.Open(nil, true, "new Guard") }, nil},
		{"an inner Try has begun, and ends", func(s *subject) {
			inner := s.child.Open(s.try, false, "inner Try")
			inner.Close()
		}, nil},
	}},
	{"TryAll", []event{
		{"`Ask`", func(s *subject) { s.child.Ask("vote") }, nil},
		{"`Confirm`", func(s *subject) { s.vote.Confirm() }, only(func(s *subject) bool { return s.vote != nil && !s.vote.cast }, "no vote is open")},
		{"`Withdraw`", func(s *subject) { s.vote.Withdraw() }, only(func(s *subject) bool { return s.vote != nil && !s.vote.cast }, "no vote is open")},
		{"`Counted`", func(s *subject) { s.vote.Counted() }, only(func(s *subject) bool { return s.holds > 0 }, "this rank has not said yes")},
	}},
	{"The communicator", []event{
		{"`Make`, derived", func(s *subject) { s.make("leaf", s.child, s.child, nil) }, nil},
		{"`Close`", func(s *subject) {
			if !s.child.Close() {
				s.note = "an error is on its way"
			}
		}, only(func(s *subject) bool { return !s.child.closed }, "it is closed once")},
		{"`Revoked`", func(s *subject) {
			if !s.child.Revoked(1) {
				s.note = "known"
			}
		}, nil},
		{"`RevokeDone`", func(s *subject) { s.child.RevokeDone() }, only(func(s *subject) bool { return s.child.revoked && s.child.moving > 0 }, "no revocation is under way")},
		{"`Died`", func(s *subject) { s.child.Died(1) }, nil},
	}},
	{"The process", []event{
		{"`Leave`", func(s *subject) { s.Leave(); s.left = true }, only(func(s *subject) bool { return !s.left }, "a program ends once")},
		{"`Go`", func(s *subject) { s.Go() }, only(func(s *subject) bool { return s.left }, "the program has not ended")},
		{"`Die`", func(s *subject) { s.Die() }, only(func(s *subject) bool { return !s.dead }, "a process dies once")},
		{"`End`", func(s *subject) { s.End() }, nil},
		{"`Fail`", func(s *subject) { s.child.Fail() }, nil},
	}},
}

func (s *subject) raised(corrupt bool) {
	if s.child.Raise(&Raised{Data: []byte("new"), Corrupt: corrupt}) == nil {
		s.note = "refused"
	}
}

func findingWord(f Finding, e *Error, pending bool) string {
	text := textOfFinding(f, e, pending)
	if e != nil {
		text, _, _ = strings.Cut(text, " ")
		if e.Comm.Owner == "world" {
			text = "the parent's " + text
		}
	}
	return "finds " + text
}

// words are those of the child's state.
func (s *subject) words() string {
	c := s.child
	var words []string
	add := func(yes bool, word string) {
		if yes {
			words = append(words, word)
		}
	}
	add(c.closed, "closed")
	add(c.corrupted != nil && !c.Knows(), "corrupted")
	add(c.corrupted != nil && c.Knows(), "known")
	add(c.revoked && c.moving > 0, "revoking")
	add(c.revoked && c.moving == 0, "revoked")
	add(c.settling != nil, "settling")
	add(c.settling == nil && c.moving > 0 && !c.revoked, "moving")
	add(c.moving == 0 && len(c.untold) > 0, "untold")
	owed := slices.Contains(s.owed, c)
	add(owed, "noticed")
	held := slices.ContainsFunc(c.raised, func(r *Raised) bool { return slices.Contains(s.held, r) })
	switch {
	case held:
		add(true, "held")
	case len(c.raised) > 0 && c.unwound:
		add(true, "unwinding")
	case len(c.raised) > 0:
		add(true, "raised")
	case c.joined && c.settling == nil:
		add(true, "joined")
	}
	add(c.fatal, "fatal")
	add(c.losing, "losing")
	own := 0
	if c.joined {
		own = 1
	}
	add(c.frozen > own, "frozen")
	add(s.vote != nil && !s.vote.cast, "voting")
	add(s.holds > 0 && !held, "holding")
	add(s.inside.Load() != nil, "waiting")
	add(s.left, "left")
	add(s.dead, "dead")
	if len(words) == 0 {
		return "quiet"
	}
	return strings.Join(words, " + ")
}

// tables makes the tables.
func tables(t *testing.T) string {
	var page strings.Builder
	for _, table := range tableEvents {
		fmt.Fprintf(&page, "\n### %s\n\n| state |", table.title)
		for _, e := range table.events {
			fmt.Fprintf(&page, " %s |", e.name)
		}
		fmt.Fprintf(&page, "\n|%s\n", strings.Repeat(" --- |", len(table.events)+1))
		for _, state := range tableStates {
			fmt.Fprintf(&page, "| **%s** |", state.name)
			for _, e := range table.events {
				s := newSubject()
				state.into(s)
				s.Outputs()
				require.Equal(t, state.name, s.words())
				fmt.Fprintf(&page, " %s |", s.cell(e))
			}
			page.WriteString("\n")
		}
	}
	page.WriteString("\n")
	return page.String()
}

// cell feeds an event, and says what comes of it.
func (s *subject) cell(e event) string {
	if e.never != nil {
		if because := e.never(s); because != "" {
			return "*impossible: " + because + "*"
		}
	}
	was := s.words()
	e.feed(s)
	var parts []string
	if s.note != "" {
		parts = append(parts, s.note)
	}
	for _, o := range s.Outputs() {
		if text := shortText(&o); text != "" {
			parts = append(parts, text)
		}
	}
	if len(s.child.later) > 0 {
		parts = append(parts, "waits for `Settled`")
	}
	if now := s.words(); now != was {
		parts = append(parts, "→ **"+now+"**")
	}
	if len(parts) == 0 {
		return "–"
	}
	return strings.Join(parts, ", ")
}

func shortText(o *Output) string {
	text := o.Action.String()
	switch {
	case o.Action == Tell, o.Action == Wake:
		return ""
	case o.Action == Interrupt:
		return fmt.Sprintf("interrupt %s", o.Scope.Owner)
	case o.Action == Open && o.Frozen[0]:
		text += " frozen"
	}
	if o.Action == Raise && o.Family != nil {
		text = "raise and join"
	}
	if o.Comm != nil && o.Comm.Owner == "world" {
		text = "parent: " + text
	}
	return text
}
