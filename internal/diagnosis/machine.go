package diagnosis

import (
	"maps"
	"slices"

	"github.com/mpicx/go-mpicx/internal/binomial"
	"github.com/mpicx/go-mpicx/internal/errchan"
)

// A Why is the reason of a question. If several ranks ask for the same reason, other than
// ByProgram, one of them prints the answers.
type Why uint8

// The reasons.
const (
	ByProgram Why = iota
	BySignal
	ByDeadline
	ByStall
	reasons
)

// Moves is the answer, to a question ByStall, of a rank that has moved lately.
const Moves = "moves"

// A Message is a question or, if Said is not nil, an answer.
type Message struct {
	Origin int    // the rank that asks
	Number uint64 // the number of the question at this rank
	Why    Why
	Alone  bool // asks the receiver alone, not those below it

	Said map[int]string // by rank; "": it has died
	// Rival is the first of these ranks that asked for the same reason at the same time; -1: none.
	Rival int
}

// An Output is a message to send.
type Output struct {
	To int
	*Message
}

// A Machine is the protocol at one rank. It has no I/O and no clock. The caller feeds it by
// Ask, Insist, Step and Died, and sends what Next returns. Its methods are not safe for
// concurrent use.
//
// A rank does not keep answers that it has passed on. If the rank that it passed them to dies,
// another rank asks it again, and it asks again.
type Machine struct {
	rank, size int
	number     uint64 // of this rank's last question
	dead       map[int]bool
	surveys    map[int]*survey // those under way, by origin; one of each
	out        errchan.Queue[Output]
}

// A survey is a rank's part in a question: it gathers the answers of the subtree below it.
type survey struct {
	question Message
	askers   []int        // ranks that get the answer; none at the origin
	awaited  map[int]bool // ranks that were asked and have not answered
	said     map[int]string
	rival    int
}

// NewMachine returns the machine of one of size ranks.
func NewMachine(rank, size int) *Machine {
	return &Machine{rank: rank, size: size, dead: make(map[int]bool), surveys: make(map[int]*survey)}
}

// Ask begins a question of this rank, whose own answer is text. It ends a question that was under
// way.
func (m *Machine) Ask(why Why, text string) {
	m.number++
	m.begin(Message{Origin: m.rank, Number: m.number, Why: why}, text)
}

// Complete says whether all ranks have answered.
func (m *Machine) Complete() bool {
	s := m.surveys[m.rank]
	return s == nil || len(s.awaited) == 0
}

// End ends the question. It returns the answers, and the first other rank that asked for the same
// reason at the same time, or -1.
func (m *Machine) End() (said map[int]string, rival int) {
	s := m.surveys[m.rank]
	if s == nil { // this process has died
		return nil, -1
	}
	delete(m.surveys, m.rank)
	return s.said, s.rival
}

// Insist asks each rank separately that this one has no answer of since Ask.
func (m *Machine) Insist() {
	if s := m.surveys[m.rank]; s != nil {
		s.question.Alone = true
		for r := range m.size {
			m.ask(s, r)
		}
	}
}

// Step takes a message. If it is a question, text is this rank's answer.
func (m *Machine) Step(from int, msg *Message, text string) {
	s := m.surveys[msg.Origin]
	current := s != nil && s.question.Number == msg.Number
	switch {
	case msg.Said != nil && current:
		m.take(s, msg)
	case msg.Said != nil || msg.Origin == m.rank || m.dead[msg.Origin]: // nobody waits for it
	case msg.Alone:
		answer := m.answer(msg)
		answer.Said[m.rank] = text
		m.send(from, answer)
	case current:
		s.askers = append(s.askers, from)
	case s == nil || s.question.Number < msg.Number:
		m.begin(*msg, text, from)
	}
}

// Died notes a death.
func (m *Machine) Died(rank int) {
	m.dead[rank] = true
	delete(m.surveys, rank)
	for _, origin := range slices.Sorted(maps.Keys(m.surveys)) {
		if s := m.surveys[origin]; s.awaited[rank] {
			delete(s.awaited, rank)
			m.ask(s, rank)
			m.tryEnd(s)
		}
	}
}

// begin takes part in a question.
func (m *Machine) begin(q Message, text string, askers ...int) {
	s := &survey{question: q, askers: askers, awaited: make(map[int]bool), said: map[int]string{m.rank: text}, rival: m.answer(&q).Rival}
	m.surveys[q.Origin] = s
	m.askBelow(s, m.rank)
	m.tryEnd(s)
}

// askBelow asks the children of a rank in the tree, the one with the most ranks below it first.
func (m *Machine) askBelow(s *survey, rank int) {
	v := binomial.Around(rank-s.question.Origin, m.size)
	for k := binomial.Children(v, m.size) - 1; k >= 0; k-- {
		m.ask(s, binomial.Around(binomial.Child(v, k)+s.question.Origin, m.size))
	}
}

// ask asks a rank, or the ranks below it if it has died.
func (m *Machine) ask(s *survey, rank int) {
	if _, known := s.said[rank]; known {
		return
	}
	if m.dead[rank] {
		s.said[rank] = ""
		if !s.question.Alone {
			m.askBelow(s, rank)
		}
		return
	}
	s.awaited[rank] = true
	m.send(rank, s.question)
}

// take takes an answer. It keeps the first text of each rank.
func (m *Machine) take(s *survey, answer *Message) {
	for r, text := range answer.Said {
		if _, known := s.said[r]; !known {
			s.said[r] = text
		}
		delete(s.awaited, r)
	}
	s.rival = first(s.rival, answer.Rival)
	m.tryEnd(s)
}

// tryEnd passes the answers on when all have come.
func (m *Machine) tryEnd(s *survey) {
	if len(s.awaited) > 0 || s.question.Origin == m.rank {
		return
	}
	delete(m.surveys, s.question.Origin)
	answer := m.answer(&s.question)
	answer.Said, answer.Rival = s.said, s.rival
	for _, to := range s.askers {
		m.send(to, answer)
	}
}

// answer returns an empty answer to q.
func (m *Machine) answer(q *Message) Message {
	rival := -1
	if s := m.surveys[m.rank]; s != nil && q.Why != ByProgram && s.question.Why == q.Why && q.Origin != m.rank {
		rival = m.rank
	}
	return Message{Origin: q.Origin, Number: q.Number, Said: make(map[int]string), Rival: rival}
}

// first returns the lesser of two ranks; -1 means none.
func first(a, b int) int {
	if a < 0 || b >= 0 && b < a {
		return b
	}
	return a
}

func (m *Machine) send(to int, msg Message) { m.out.Push(Output{to, &msg}) }

// Next returns the next output, and whether there is one.
func (m *Machine) Next() (Output, bool) { return m.out.Pop() }
