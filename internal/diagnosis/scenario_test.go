package diagnosis_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/diagnosis"
	"github.com/mpicx/go-mpicx/internal/scenario"
)

// TestScenarios plays the scripts in testdata/scenarios/diagnosis. Rewrite them with
// go test -run TestScenarios -rewrite, and read the difference.
func TestScenarios(t *testing.T) {
	scenario.Play(t, "../../testdata/scenarios/diagnosis", verbs, func(out *strings.Builder) func(*testing.T, verb, *datadriven.TestData) {
		s := &script{out: out}
		return func(t *testing.T, v verb, d *datadriven.TestData) { v(t, s, d) }
	})
}

type verb = func(t *testing.T, s *script, d *datadriven.TestData)

// script is a job whose messages go in the order in which they were sent, as far as to stopped
// ranks.
type script struct {
	machines []*diagnosis.Machine
	stopped  []int
	dead     []int
	texts    map[int]string
	queue    []sent
	out      *strings.Builder
}

type sent struct {
	from, to int
	payload  []byte
}

func (s *script) feed(r int, f func(*diagnosis.Machine)) {
	f(s.machines[r])
	for o, ok := s.machines[r].Next(); ok; o, ok = s.machines[r].Next() {
		s.queue = append(s.queue, sent{r, o.To, diagnosis.Encode(o.Message)})
	}
}

// carry takes the messages, and prints them.
func (s *script) carry(t *testing.T) {
	var kept []sent
	for len(s.queue) > 0 {
		m := s.queue[0]
		s.queue = s.queue[1:]
		msg, err := diagnosis.Decode(m.payload, len(s.machines))
		require.NoError(t, err)
		switch {
		case slices.Contains(s.dead, m.to):
		case slices.Contains(s.stopped, m.to):
			kept = append(kept, m)
		case msg.Said != nil:
			fmt.Fprintf(s.out, "%d answers %d: %s\n", m.from, m.to, said(msg.Said))
			s.feed(m.to, func(a *diagnosis.Machine) { a.Step(m.from, msg, "") })
		default:
			how := ""
			if msg.Origin != m.from {
				how = fmt.Sprintf(" for %d", msg.Origin)
			}
			if msg.Alone {
				how = " alone"
			}
			fmt.Fprintf(s.out, "%d asks %d%s\n", m.from, m.to, how)
			s.feed(m.to, func(a *diagnosis.Machine) { a.Step(m.from, msg, s.texts[m.to]) })
		}
	}
	s.queue = kept
}

func said(all map[int]string) string {
	var parts []string
	for _, g := range diagnosis.Grouped(all) {
		text := g.Text
		if text == "" {
			text = "dead"
		}
		parts = append(parts, diagnosis.Name(g.Ranks)+": "+text)
	}
	return strings.Join(parts, "; ")
}

var verbs = map[string]verb{
	// new size=N: ranks that are all in a Barrier.
	"new": func(t *testing.T, s *script, d *datadriven.TestData) {
		size := 0
		d.ScanArgs(t, "size", &size)
		*s = script{out: s.out, texts: make(map[int]string)}
		for r := range size {
			s.machines = append(s.machines, diagnosis.NewMachine(r, size))
			s.texts[r] = "Barrier"
		}
	},
	// in rank=R: the text is what it is in.
	"in": func(t *testing.T, s *script, d *datadriven.TestData) {
		for _, r := range s.ranks(t, d) {
			s.texts[r] = strings.TrimSpace(d.Input)
		}
	},
	// ask rank=R [signal]: R asks.
	"ask": func(t *testing.T, s *script, d *datadriven.TestData) {
		why := diagnosis.ByProgram
		if d.HasArg("signal") {
			why = diagnosis.BySignal
		}
		for _, r := range s.ranks(t, d) {
			s.feed(r, func(m *diagnosis.Machine) { m.Ask(why, s.texts[r]) })
		}
		s.carry(t)
	},
	// insist rank=R: it asks those again of whom it has heard nothing.
	"insist": func(t *testing.T, s *script, d *datadriven.TestData) {
		for _, r := range s.ranks(t, d) {
			s.feed(r, (*diagnosis.Machine).Insist)
		}
		s.carry(t)
	},
	// end rank=R: what it has been told.
	"end": func(t *testing.T, s *script, d *datadriven.TestData) {
		for _, r := range s.ranks(t, d) {
			all := s.machines[r].Complete()
			answers, rival := s.machines[r].End()
			fmt.Fprintf(s.out, "complete %t, rival %d: %s\n", all, rival, said(answers))
		}
	},
	// stop rank=R: it takes no message, until continue.
	"stop": func(t *testing.T, s *script, d *datadriven.TestData) { s.stopped = append(s.stopped, s.ranks(t, d)...) },
	"continue": func(t *testing.T, s *script, d *datadriven.TestData) {
		s.stopped = nil
		s.carry(t)
	},
	// die rank=R [told=T]: it dies, and all others, or those, are told.
	"die": func(t *testing.T, s *script, d *datadriven.TestData) {
		s.dead = append(s.dead, s.ranks(t, d)...)
		for _, r := range s.ranks(t, d) {
			for to := range s.machines {
				if !slices.Contains(s.dead, to) {
					s.feed(to, func(m *diagnosis.Machine) { m.Died(r) })
				}
			}
		}
		s.carry(t)
	},
}

func (s *script) ranks(t *testing.T, d *datadriven.TestData) []int {
	var ranks []int
	d.ScanArgs(t, "rank", &ranks)
	return ranks
}
