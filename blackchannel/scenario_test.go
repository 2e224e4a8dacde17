package blackchannel_test

import (
	"fmt"
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
			s.choose(t, d)
			v(t, s, d)
		}
	})
}

// A verb carries out a command.
type verb = func(t *testing.T, s *script, d *datadriven.TestData)

// script is the state of a script that is played.
type script struct {
	*network // that a command is about
	all      []*network
	out      *strings.Builder
}

// choose sets the communicator that a command is about: comm=I is the I-th
// duplicate, else it is the first of all.
func (s *script) choose(t *testing.T, d *datadriven.TestData) {
	comm := 0
	d.MaybeScanArgs(t, "comm", &comm)
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

func (s *script) ranks(t *testing.T, d *datadriven.TestData) []int {
	var ranks []int
	d.ScanArgs(t, "rank", &ranks)
	return ranks
}

// verbs are the commands of scripts.
var verbs = map[string]func(t *testing.T, s *script, d *datadriven.TestData){
	// new size=N [attend=false]: a communicator, whose ranks join a round as soon as they learn of
	// it, as those do that are inside an operation. With attend=false they compute, until join.
	"new": func(t *testing.T, s *script, d *datadriven.TestData) {
		size, attend := 0, true
		d.ScanArgs(t, "size", &size)
		d.MaybeScanArgs(t, "attend", &attend)
		s.network = newNetwork(size)
		s.all = []*network{s.network}
		s.trace = s.printf
		for r := range size {
			s.attends[r] = attend
		}
	},
	// dup comm=I [of=J] rank=R or rank=(R, …): ranks make their sides of a duplicate, of J (0: the
	// first communicator). They compute, until attend. Commands with comm=I are about it.
	"dup": func(t *testing.T, s *script, d *datadriven.TestData) {
		var comm, of int
		d.ScanArgs(t, "comm", &comm)
		d.MaybeScanArgs(t, "of", &of)
		for _, r := range s.ranks(t, d) {
			s.machines[r] = s.all[of].machines[r].Dup(uint64(comm))
			s.machines[r].Listen()
			s.carry(r)
		}
	},
	// close rank=R or rank=(R, …): ranks give back their sides, which all have closed.
	"close": func(t *testing.T, s *script, d *datadriven.TestData) {
		for _, r := range s.ranks(t, d) {
			s.machines[r].Close()
			s.carry(r)
		}
	},
	// raise rank=R data=TEXT: the rank signals an error.
	"raise": func(t *testing.T, s *script, d *datadriven.TestData) {
		var rank int
		var data string
		d.ScanArgs(t, "rank", &rank)
		d.ScanArgs(t, "data", &data)
		s.raise(rank, data, false)
	},
	// corrupt rank=R data=TEXT: the rank unwinds.
	"corrupt": func(t *testing.T, s *script, d *datadriven.TestData) {
		var rank int
		var data string
		d.ScanArgs(t, "rank", &rank)
		d.ScanArgs(t, "data", &data)
		s.raise(rank, data, true)
	},
	// join rank=R or rank=(R, …): ranks that computed come to their next operation.
	"join": func(t *testing.T, s *script, d *datadriven.TestData) {
		for _, r := range s.ranks(t, d) {
			s.join(r)
		}
	},
	// attend rank=R or rank=(R, …): ranks are inside an operation from now on, or have
	// closed the communicator or ended, and join every round.
	"attend": func(t *testing.T, s *script, d *datadriven.TestData) {
		for _, r := range s.ranks(t, d) {
			s.attends[r] = true
			s.join(r)
		}
	},
	// compute rank=R or rank=(R, …): ranks are inside no operation from now on.
	"compute": func(t *testing.T, s *script, d *datadriven.TestData) {
		for _, r := range s.ranks(t, d) {
			s.attends[r] = false
		}
	},
	// crash rank=R: the rank does nothing any more, and no message reaches it.
	"crash": func(t *testing.T, s *script, d *datadriven.TestData) {
		for _, r := range s.ranks(t, d) {
			s.crashed[r], s.attends[r] = true, false
		}
	},
	// deliver from=R to=R [count=N]: the oldest messages on the way.
	"deliver": func(t *testing.T, s *script, d *datadriven.TestData) {
		var e edge
		count := 1
		d.ScanArgs(t, "from", &e.from)
		d.ScanArgs(t, "to", &e.to)
		d.MaybeScanArgs(t, "count", &count)
		for range count {
			if len(s.queues[e]) == 0 {
				s.printf("no message from %d to %d\n", e.from, e.to)
				return
			}
			s.step(e)
		}
	},
	// stabilize: messages, until none is on the way. With comm=I, only those of it.
	"stabilize": func(t *testing.T, s *script, d *datadriven.TestData) {
		nets := s.all
		if d.HasArg("comm") {
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
	// inject from=R to=R kind=notice|reports|verdict round=N: a message that no
	// machine sent. The data of reports is "forged".
	"inject": func(t *testing.T, s *script, d *datadriven.TestData) {
		var e edge
		var kind string
		var round uint64
		d.ScanArgs(t, "from", &e.from)
		d.ScanArgs(t, "to", &e.to)
		d.ScanArgs(t, "kind", &kind)
		d.ScanArgs(t, "round", &round)
		msg := &blackchannel.Message{Round: round}
		reports := []errchan.Report{{Rank: e.from, Data: []byte("forged")}}
		switch kind {
		case "notice":
			msg.Kind = blackchannel.Notice
		case "reports":
			msg.Kind, msg.Reports = blackchannel.Reports, reports
		case "verdict":
			msg.Kind, msg.Verdict = blackchannel.Verdict, &errchan.Verdict{Round: round, Reports: reports}
		default:
			d.Fatalf(t, "no such kind: %s", kind)
		}
		if err := s.machines[e.to].Step(e.from, msg); err != nil {
			s.printf("error: %v\n", err)
		}
		s.carry(e.to)
	},
	// decode size=N, below it a message in quoted bytes: what Decode says.
	"decode": func(t *testing.T, s *script, d *datadriven.TestData) {
		var size int
		d.ScanArgs(t, "size", &size)
		var b []byte
		_, err := fmt.Sscanf(d.Input, "%q", &b)
		require.NoError(t, err, d.Pos)
		msg, err := blackchannel.Decode(b, size)
		if err != nil {
			s.printf("error: %v\n", err)
			return
		}
		s.printf("%v\n", messageText{msg})
	},
	// state: what each rank waits for, and the messages on the way.
	"state": func(t *testing.T, s *script, d *datadriven.TestData) {
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
				s.printf("%s%d->%d %v on its way\n", s.name, e.from, e.to, messageText{p.msg})
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
