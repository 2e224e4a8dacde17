package ledger

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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

// An event is what is fed, and in which states it can be; nil: in all.
type event struct {
	name    string
	feed    func(*subject)
	can     func(*subject) bool
	untried bool // no Try is running
}

// canNotice: the channel tells of a round once, and no round follows a corruption.
func canNotice(s *subject) bool {
	return s.child.corrupted == nil && !slices.Contains(s.owed, s.child) &&
		!(s.child.joined && len(s.child.raised) == 0 && s.child.settling == nil)
}

func canNoticeCorrupt(s *subject) bool {
	return s.child.corrupted == nil && !(s.child.fatal && s.child.settling == nil)
}

// canResolve: a round that is open here, and that this rank has joined. While one is settling, the
// next is noticed first.
func canResolve(s *subject) bool {
	return s.child.corrupted == nil && s.child.settling == nil && s.child.open && s.child.joined
}

func canVote(s *subject) bool { return s.vote != nil && !s.vote.cast }

var tableEvents = []struct {
	title  string
	events []event
}{
	{"The error channel", []event{
		{"`Noticed`", (*subject).notice, canNotice, false},
		{"`Noticed`, corrupt", (*subject).fatal, canNoticeCorrupt, false},
		{"`Resolved`", func(s *subject) { s.resolve(s.child, false) }, canResolve, false},
		{"`Resolved`, corrupt", func(s *subject) { s.resolve(s.child, true) }, canResolve, false},
	}},
	{"The driver, which has carried out `Complete` and `Advance`", []event{
		{"`Settled`", func(s *subject) { s.child.Settled() }, func(s *subject) bool { return s.child.settling != nil }, false},
		{"`Moved`", func(s *subject) { s.child.Moved() }, func(s *subject) bool { return s.child.moving > 0 && s.child.settling == nil }, false},
	}},
	{"The parent", []event{
		{"noticed", func(s *subject) { s.world.Noticed(0, 1, false) }, func(s *subject) bool { return !s.world.open }, false},
		{"joined", func(s *subject) {
			if !s.world.open {
				s.world.Noticed(0, 1, false)
			}
			s.world.join()
		}, func(s *subject) bool { return !s.world.joined }, false},
		{"propagated", func(s *subject) { s.parentEnds(false) }, nil, false},
		{"corrupted", func(s *subject) { s.parentEnds(true) }, nil, false},
	}},
	{"The program waits and looks", []event{
		{"`BeginWait`", func(s *subject) { s.enter(s.child) }, nil, false},
		{"`EndWait`", func(s *subject) { s.EndWait(true) }, func(s *subject) bool { return s.inside.Load() != nil }, false},
		{"`Watch`", func(s *subject) {
			if s.Watch(1) {
				s.Answer()
			}
		}, nil, false},
		{"`Look` (a Wait's)", func(s *subject) { s.note = findingWord(s.child.Look(Take)) }, nil, false},
		{"`Look`, where no Try is running", func(s *subject) { s.note = findingWord(s.child.Look(Take)) }, nil, true},
		{"`Look` to repair", func(s *subject) { s.note = findingWord(s.child.Look(TakeToRepair)) }, nil, false},
		{"`Err`", func(s *subject) {
			f, e := s.err(s.child)
			s.note = findingWord(f, e, false)
		}, nil, false},
	}},
	{"The program raises", []event{
		{"`Raise`", func(s *subject) { s.raised(false) }, nil, false},
		{"`Raise`, corrupt", func(s *subject) { s.raised(true) }, nil, false},
		{"`Lose`", func(s *subject) { s.child.Lose() }, nil, false},
	}},
	{"Scopes", []event{
		{"a Try begins", func(s *subject) { s.child.Open(nil, false, "new Try") }, nil, false},
		{"a Guard begins", func(s *subject) { s.child.Open(nil, true, "new Guard") }, nil, false},
		{"`Leave`: the function has returned", func(s *subject) { s.leave(false) }, nil, false},
		{"`Leave`, with an error of this rank", func(s *subject) { s.leave(true) }, nil, false},
		{"`Close` of the Try", func(s *subject) { s.try.Close() }, nil, false},
		{"an inner Try has begun, and ends", func(s *subject) {
			inner := s.child.Open(s.try, false, "inner Try")
			inner.Close()
		}, nil, false},
	}},
	{"TryAll", []event{
		{"`Ask`", func(s *subject) { s.child.Ask("vote") }, nil, false},
		{"`Confirm`", func(s *subject) { s.vote.Confirm() }, canVote, false},
		{"`Withdraw`", func(s *subject) { s.vote.Withdraw() }, canVote, false},
		{"`Counted`", func(s *subject) { s.vote.Counted() }, func(s *subject) bool { return s.holds > 0 }, false},
	}},
	{"The communicator", []event{
		{"`Make`, derived", func(s *subject) { s.make("leaf", s.child, s.child, nil) }, nil, false},
		{"`Close`", func(s *subject) { s.child.Close() }, func(s *subject) bool { return !s.child.closed }, false},
		{"`Revoked`", func(s *subject) {
			if !s.child.Revoked(1) {
				s.note = "known"
			}
		}, nil, false},
		{"`RevokeDone`", func(s *subject) { s.child.RevokeDone() }, func(s *subject) bool { return s.child.revoking }, false},
	}},
	{"The process", []event{
		{"`Leave`", func(s *subject) { s.Leave(); s.left = true }, func(s *subject) bool { return !s.left }, false},
		{"`Go`", func(s *subject) { s.Go() }, func(s *subject) bool { return s.left }, false},
		{"`Die`", func(s *subject) { s.Die() }, func(s *subject) bool { return !s.dead }, false},
		{"`End`", func(s *subject) { s.End(true) }, nil, false},
		{"`Fail`", func(s *subject) { s.child.Fail() }, nil, false},
	}},
}

func errorWord(e *Error) string {
	text := "verdict"
	if e.Corrupt() {
		text = "corruption"
	}
	if e.Comm.Owner == "world" {
		text = "parent's " + text
	}
	return "the " + text
}

func findingWord(f Finding, e *Error, pending bool) string {
	if e != nil {
		return "finds " + errorWord(e)
	}
	return "finds " + textOfFinding(f, nil, pending)
}

// tables makes the tables. States in which the same comes of an event share a row. Those of which
// nothing comes are left out.
func tables(t *testing.T) string {
	var page strings.Builder
	for _, table := range tableEvents {
		fmt.Fprintf(&page, "\n### %s\n\n| event | states | what comes of it |\n| --- | --- | --- |\n", table.title)
		for _, e := range table.events {
			var effects []string
			states := map[string][]string{} // by effect
			for _, state := range tableStates {
				s := newSubject(!e.untried)
				state.into(s)
				s.Outputs()
				require.Equal(t, state.name, cmp.Or(strings.Join(s.words(), " + "), "quiet"))
				effect := s.effect(e)
				if states[effect] == nil && effect != "" {
					effects = append(effects, effect)
				}
				states[effect] = append(states[effect], "**"+state.name+"**")
			}
			name := e.name
			for _, effect := range effects {
				fmt.Fprintf(&page, "| %s | %s | %s |\n", name, strings.Join(states[effect], ", "), effect)
				name = ""
			}
		}
	}
	page.WriteString("\n")
	return page.String()
}

// effect feeds an event, and says what comes of it.
func (s *subject) effect(e event) string {
	if e.can != nil && !e.can(s) {
		return ""
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
	return strings.Join(append(parts, change(was, s.words())...), ", ")
}

// change says how the words of a state have changed.
func change(was, now []string) (changes []string) {
	without := func(all, some []string) string {
		return strings.Join(slices.DeleteFunc(slices.Clone(all), func(w string) bool { return slices.Contains(some, w) }), " + ")
	}
	gone, come := without(was, now), without(now, was)
	switch {
	case gone == strings.Join(was, " + ") && gone != "": // all that it was
		changes = append(changes, "→ **"+cmp.Or(come, "quiet")+"**")
	case gone != "":
		changes = append(changes, "− **"+gone+"**")
		fallthrough
	case come != "":
		changes = append(changes, "+ **"+come+"**")
	}
	return changes
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
