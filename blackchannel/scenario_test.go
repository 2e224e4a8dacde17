package blackchannel_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/blackchannel"
	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/scenario"
)

// TestScenarios plays the scripts in testdata/scenarios/blackchannel. Each
// directive is a command and, below the dashes, all that it led to. Rewrite them
// with go test -run TestScenarios -rewrite, and read the difference.
func TestScenarios(t *testing.T) {
	scenario.Play(t, "../testdata/scenarios/blackchannel", verbs, func(out *strings.Builder) func(*testing.T, verb, *datadriven.TestData) {
		s := &script{out: out}
		return func(t *testing.T, v verb, d *datadriven.TestData) {
			s.t, s.d = t, d
			s.choose()
			v(s)
		}
	})
}

// A verb carries out a command.
type verb = func(s *script)

// script is the state of a script that is played.
type script struct {
	*network // that a command is about
	all      []*network
	out      *strings.Builder

	t *testing.T
	d *datadriven.TestData // the command
}

// choose sets the communicator that a command is about: comm=I is the I-th duplicate, else it is
// the first of all.
func (s *script) choose() {
	comm := s.number("comm", 0)
	for comm >= len(s.all) && comm > 0 {
		net := newNetwork(len(s.all[0].machines))
		net.name, net.trace = fmt.Sprintf("comm %d: ", len(s.all)), s.printf
		clear(net.machines)
		s.all = append(s.all, net)
	}
	for _, net := range s.all {
		net.copies = s.all
	}
	if len(s.all) > 0 {
		s.network = s.all[comm]
	}
}

func (s *script) printf(format string, args ...any) { fmt.Fprintf(s.out, format, args...) }

// number is an argument that has a default.
func (s *script) number(key string, or int) int {
	s.d.MaybeScanArgs(s.t, key, &or)
	return or
}

func (s *script) word(key string) (word string) {
	s.d.ScanArgs(s.t, key, &word)
	return word
}

// ranks are those that the command is about: rank=R or rank=(R, …).
func (s *script) ranks() (ranks []int) {
	s.d.ScanArgs(s.t, "rank", &ranks)
	return ranks
}

// edge is that of from=R to=R.
func (s *script) edge() (e edge) {
	s.d.ScanArgs(s.t, "from", &e.from)
	s.d.ScanArgs(s.t, "to", &e.to)
	return e
}

// verbs are the commands of scripts.
var verbs = map[string]verb{
	// new size=N [attend=false]: a communicator, whose ranks join a round as soon as they learn of
	// it, as those do that are inside an operation. With attend=false they compute, until join.
	"new": func(s *script) {
		attend := true
		s.d.MaybeScanArgs(s.t, "attend", &attend)
		s.network = newNetwork(s.number("size", 0))
		s.all = []*network{s.network}
		s.trace = s.printf
		s.attends = slices.Repeat([]bool{attend}, len(s.machines))
	},
	// dup comm=I [of=J] rank=R: ranks make their sides of a duplicate, of J (0: the first
	// communicator). They compute, until attend. Commands with comm=I are about it.
	"dup": func(s *script) {
		for _, r := range s.ranks() {
			s.machines[r] = s.all[s.number("of", 0)].machines[r].Dup(uint64(s.number("comm", 0)))
			s.machines[r].Listen()
			s.carry(r)
		}
	},
	// close rank=R: ranks close the communicator, or their programs end.
	"close": func(s *script) {
		for _, r := range s.ranks() {
			s.machines[r].Release()
			s.carry(r)
		}
	},
	// raise rank=R data=TEXT: the rank signals an error.
	"raise": func(s *script) { s.raise(s.ranks()[0], s.word("data"), false) },
	// ask rank=R data=TEXT: the rank asks for a stop.
	"ask": func(s *script) {
		s.machines[s.ranks()[0]].Ask([]byte(s.word("data")))
		s.carry(s.ranks()[0])
	},
	// corrupt rank=R data=TEXT: the rank unwinds.
	"corrupt": func(s *script) { s.raise(s.ranks()[0], s.word("data"), true) },
	// join rank=R: ranks that computed come to their next operation.
	"join": func(s *script) {
		for _, r := range s.ranks() {
			s.join(r)
		}
	},
	// attend rank=R: ranks are inside an operation from now on, or have closed the communicator or
	// ended, and join every round.
	"attend": func(s *script) {
		for _, r := range s.ranks() {
			s.attends[r] = true
			s.join(r)
		}
	},
	// compute rank=R: ranks are inside no operation from now on.
	"compute": func(s *script) {
		for _, r := range s.ranks() {
			s.attends[r] = false
		}
	},
	// crash rank=R: the rank does nothing any more, and no message reaches it.
	"crash": func(s *script) {
		for _, r := range s.ranks() {
			s.crashed[r], s.attends[r] = true, false
		}
	},
	// deliver from=R to=R [count=N]: the oldest messages on the way.
	"deliver": func(s *script) {
		e := s.edge()
		for range s.number("count", 1) {
			if len(s.queues[e]) == 0 {
				s.printf("no message from %d to %d\n", e.from, e.to)
				return
			}
			s.step(e)
		}
	},
	// stabilize: messages, until none is on the way. With comm=I, only those of it.
	"stabilize": func(s *script) {
		nets := s.all
		if s.d.HasArg("comm") {
			nets = []*network{s.network}
		}
		for again := true; again; {
			again = false
			for _, s.network = range nets {
				if len(s.busy) > 0 {
					s.step(s.busy[0])
					again = true
				}
			}
		}
	},
	// inject from=R to=R kind=notice|reports|verdict|closed round=N: a message that no machine sent.
	// The data of reports is "forged".
	"inject": func(s *script) {
		e := s.edge()
		msg := &blackchannel.Message{Comm: uint64(s.number("comm", 0))}
		s.d.ScanArgs(s.t, "round", &msg.Round)
		reports := []errchan.Report{{Rank: e.from, Data: []byte("forged")}}
		switch kind := s.word("kind"); kind {
		case "notice":
			msg.Kind = blackchannel.Notice
		case "closed":
			msg.Kind = blackchannel.Closed
		case "reports":
			msg.Kind, msg.Reports = blackchannel.Reports, reports
		case "verdict":
			msg.Kind, msg.Verdict = blackchannel.Verdict, &errchan.Verdict{Round: msg.Round, Reports: reports}
		default:
			s.d.Fatalf(s.t, "no such kind: %s", kind)
		}
		if err := s.family(e.to).Step(e.from, msg); err != nil {
			s.printf("error: %v\n", err)
		}
		s.carry(e.to)
	},
	// decode size=N, below it a message in quoted bytes: what Decode says.
	"decode": func(s *script) {
		var b []byte
		_, err := fmt.Sscanf(s.d.Input, "%q", &b)
		require.NoError(s.t, err, s.d.Pos)
		if msg, err := blackchannel.Decode(b, s.number("size", 0)); err != nil {
			s.printf("error: %v\n", err)
		} else {
			s.printf("%v\n", messageText(msg))
		}
	},
	// state: what each rank waits for, and the messages on the way.
	"state": func(s *script) {
		for r, m := range s.machines {
			waiting := "idle"
			switch {
			case s.crashed[r]:
				waiting = "crashed"
			case m == nil:
				waiting = "has not made it"
			case m.Waiting() != "":
				waiting = m.Waiting()
			}
			s.printf("%s%d: %s\n", s.name, r, waiting)
		}
		for _, e := range s.busy {
			for _, p := range s.queues[e] {
				s.printf("%s%d->%d %v on its way\n", s.name, e.from, e.to, messageText(p.msg))
			}
		}
	},
}

// step delivers a message and says which.
func (s *script) step(e edge) {
	s.printf("> %s%d->%d %v\n", s.name, e.from, e.to, s.queues[e][0].msg.Kind)
	if err := s.deliver(e); err != nil {
		s.printf("error: %v\n", err)
	}
}
