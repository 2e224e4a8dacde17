package ulfmbackend

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/scenario"
)

// TestScenarios plays the scripts in testdata/scenarios/ulfm. Each directive is a
// command and, below the dashes, all that it led to. Rewrite them with
// go test -run TestScenarios -rewrite, and read the difference.
func TestScenarios(t *testing.T) {
	scenario.Play(t, "../testdata/scenarios/ulfm", verbs, func(out *strings.Builder) func(*testing.T, verb, *datadriven.TestData) {
		s := &script{out: out}
		return func(t *testing.T, v verb, d *datadriven.TestData) {
			s.t, s.d = t, d
			v(s)
		}
	})
}

// A verb carries out a command.
type verb = func(s *script)

// script is the state of a script that is played: a universe of which it chooses the events.
type script struct {
	*universe
	attends []bool // joins as soon as it can
	out     *strings.Builder

	t *testing.T
	d *datadriven.TestData // the command
}

func (s *script) printf(format string, args ...any) { fmt.Fprintf(s.out, format, args...) }

// number is an argument that has a default.
func (s *script) number(key string, or int) int {
	s.d.MaybeScanArgs(s.t, key, &or)
	return or
}

func (s *script) has(word string) bool { return s.d.HasArg(word) }

// each calls f for the ranks of the command, and then has those join that attend.
func (s *script) each(f func(r int)) {
	var ranks []int
	s.d.ScanArgs(s.t, "rank", &ranks)
	for _, r := range ranks {
		f(r)
		s.attend(r)
	}
}

// feedEach gives something to the ranks of the command.
func (s *script) feedEach(f func(*Machine)) { s.each(func(r int) { s.feed(r, f) }) }

func (s *script) attend(r int) {
	if p := &s.programs[r]; s.attends[r] && s.alive(r) && p.noticed && !p.joined {
		s.join(r)
	}
}

// deliver delivers the oldest message on a wire, and says which.
func (s *script) deliver(w [2]int) {
	s.printf("> %d->%d %v\n", w[0], w[1], s.wires[w][0].Kind)
	if err := s.universe.deliver(w); err != nil {
		s.printf("error: %v\n", err)
	}
	s.attend(w[1])
}

// busy returns the wires with messages, ordered.
func (s *script) busy() [][2]int {
	var busy [][2]int
	for w, wire := range s.wires {
		if len(wire) > 0 {
			busy = append(busy, w)
		}
	}
	slices.SortFunc(busy, func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
	return busy
}

// wire is that of from=R to=R.
func (s *script) wire() (w [2]int) {
	s.d.ScanArgs(s.t, "from", &w[0])
	s.d.ScanArgs(s.t, "to", &w[1])
	return w
}

// verbs are the commands of scripts.
var verbs = map[string]verb{
	// new size=N [attend=false] [prompt]: a communicator, whose ranks join a round as soon as
	// they learn of it: when they have told others, or, with prompt, before that. With
	// attend=false they compute, until join.
	"new": func(s *script) {
		size, attend := s.number("size", 0), true
		s.d.MaybeScanArgs(s.t, "attend", &attend)
		prompt := s.has("prompt")
		s.universe = newUniverse(size, 0, func(int) program { return program{creates: true, prompt: prompt} })
		s.attends = slices.Repeat([]bool{attend}, size)
		s.universe.trace = s.printf
	},
	// raise rank=R data=TEXT [corrupt | leaving]: the rank signals an error, or unwinds, or
	// does so because its program ends.
	"raise": func(s *script) {
		var data string
		s.d.ScanArgs(s.t, "data", &data)
		s.each(func(r int) {
			s.programs[r].joined = true
			s.feed(r, func(m *Machine) {
				if s.has("leaving") {
					m.Unwind([]byte(data), m.Freeze())
				} else {
					m.Raise([]byte(data), s.has("corrupt"), m.Freeze())
				}
			})
		})
	},
	// join rank=R: ranks that computed come to their next operation.
	"join": func(s *script) {
		s.each(func(r int) {
			before := s.attends[r]
			s.attends[r] = true
			s.attend(r)
			s.attends[r] = before
		})
	},
	// compute rank=R: ranks are inside no operation from now on.
	"compute": func(s *script) { s.each(func(r int) { s.attends[r], s.programs[r].prompt = false, false }) },
	// agree rank=R [flag=N] [create]: ranks call Agree, or Dup.
	"agree": func(s *script) {
		k := Repairs
		if s.has("create") {
			k = Creations
		}
		s.each(func(r int) {
			s.programs[r].flag = s.number("flag", -1)
			s.propose(r, k)
		})
	},
	// abandon rank=R: ranks make no communicators any more.
	"abandon": func(s *script) {
		s.each(func(r int) {
			s.feed(r, (*Machine).Abandon)
			p := &s.programs[r]
			p.proposed = slices.DeleteFunc(p.proposed, func(id errchan.Agreement) bool { return id.Creates })
		})
	},
	// revoke rank=R.
	"revoke": func(s *script) { s.feedEach((*Machine).Revoke) },
	// ask rank=R data=TEXT: ranks ask for a stop.
	"ask": func(s *script) {
		var data string
		s.d.ScanArgs(s.t, "data", &data)
		s.feedEach(func(m *Machine) { m.Ask([]byte(data)) })
	},
	// close rank=R: ranks close the communicator, and join what comes.
	"close": func(s *script) {
		s.each(func(r int) { s.attends[r] = true })
		s.feedEach((*Machine).Close)
	},
	// need rank=R [ended=R]: ranks need the dead that they know of, and one that has left.
	"need": func(s *script) {
		s.each(func(r int) {
			dead := sorted(s.programs[r].died)
			if s.has("ended") {
				dead = union(dead, []int{s.number("ended", 0)})
			}
			s.feed(r, func(m *Machine) { m.Lose(dead) })
		})
	},
	// leave rank=R: the programs end.
	"leave": func(s *script) {
		s.each(func(r int) { s.attends[r] = true })
		s.feedEach((*Machine).Leave)
	},
	// die rank=R: the rank dies. The messages that it has sent are still under way.
	"die": func(s *script) { s.each(s.die) },
	// lose from=R to=R: the messages from a dead rank to another are lost.
	"lose": func(s *script) { delete(s.wires, s.wire()) },
	// learn rank=R of=R: ranks are told of a death.
	"learn": func(s *script) { s.feedEach(func(m *Machine) { m.Died(s.number("of", -1)) }) },
	// parent-join rank=R: ranks join a round of the communicator that this one is derived from.
	"parent-join": func(s *script) {
		s.parent.errs = true
		s.each(s.joinParent)
	},
	// parent-verdict rank=R: its verdict, of those ranks' reports.
	"parent-verdict": func(s *script) {
		took := 0
		s.each(func(r int) {
			took++
			s.parent.take(r)
		})
		s.parent.lost = took < len(s.machines)
		s.printf("parent:%s\n", settledText(s.parent.settled))
	},
	// parent-tell rank=R: ranks get that verdict.
	"parent-tell": func(s *script) { s.each(s.tellParent) },
	// deliver from=R to=R [count=N]: the oldest messages on the way.
	"deliver": func(s *script) {
		w := s.wire()
		for range s.number("count", 1) {
			if len(s.wires[w]) == 0 {
				s.printf("no message from %d to %d\n", w[0], w[1])
				return
			}
			s.deliver(w)
		}
	},
	// stabilize [but=R]: messages, until none is on the way, but those to R.
	"stabilize": func(s *script) {
		but := s.number("but", -1)
		for {
			busy := slices.DeleteFunc(s.busy(), func(w [2]int) bool { return w[1] == but })
			if len(busy) == 0 {
				return
			}
			s.deliver(busy[0])
		}
	},
	// state: what each rank waits for, and the messages on the way.
	"state": func(s *script) {
		for r, m := range s.machines {
			waiting := cmp.Or(m.Waiting(), "idle")
			if !s.alive(r) {
				waiting = "dead"
			}
			s.printf("%d: %s\n", r, waiting)
		}
		for _, w := range s.busy() {
			for _, msg := range s.wires[w] {
				s.printf("%d->%d %s on its way\n", w[0], w[1], messageText(msg))
			}
		}
	},
}

func corruptText(c bool) string {
	if c {
		return " corrupt"
	}
	return ""
}

func agreementText(id errchan.Agreement) string {
	what := "agreement"
	if id.Creates {
		what = "creation"
	}
	return fmt.Sprintf("%s %x/%d", what, uint64(id.Epoch), id.Seq)
}

func messageText(msg *Message) string {
	v := msg.Value
	switch {
	case msg.Kind == Notice:
		return fmt.Sprintf("notice %d%s", msg.ID.Seq, corruptText(msg.Corrupt))
	case v == nil:
		return msg.Kind.String()
	case msg.Stream == Closings:
		return fmt.Sprintf("%v closing%s", msg.Kind, deadText(v.Dead))
	case msg.Stream == Errors:
		return fmt.Sprintf("%v round %d:%s%s%s", msg.Kind, msg.ID.Seq, reportsText(v.Reports), deadText(v.Dead), settledText(v.Settled))
	}
	return fmt.Sprintf("%v %s: flag %d%s", msg.Kind, agreementText(msg.ID), v.Flag, deadText(v.Dead))
}

func verdictText(v *errchan.Verdict) string {
	return fmt.Sprintf("%d%s:%s%s%s", v.Round, corruptText(v.Corrupt), reportsText(v.Reports), deadText(v.Dead), settledText(v.Settled))
}

func deadText(dead []int) string {
	if len(dead) == 0 {
		return ""
	}
	return fmt.Sprintf(" dead %v", dead)
}

func reportsText(reports []errchan.Report) (text string) {
	for _, r := range reports {
		text += fmt.Sprintf(" %d:%s", r.Rank, r.Data)
		if r.Corrupt {
			text += "!"
		}
	}
	return text
}

func settledText(settled []errchan.Settled) (text string) {
	for _, s := range settled {
		text += fmt.Sprintf(", %s ", agreementText(s.ID))
		if s.Decision == nil {
			text += "ended by an error"
		} else {
			text += fmt.Sprintf("decided flag %d by %d", s.Decision.Flag, s.By)
		}
	}
	return text
}
