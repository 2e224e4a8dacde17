package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/scenario"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// TestScenarios plays the scripts in testdata/scenarios/ledger: what one rank is told, and does.
// Each directive is an input of its ledger and, below the dashes, the outputs in their order.
// Rewrite them with go test -run TestScenarios -rewrite, and read the difference.
func TestScenarios(t *testing.T) {
	scenario.Play(t, "../../testdata/scenarios/ledger", verbs, func(out *strings.Builder) func(*testing.T, verb, *datadriven.TestData) {
		s := &script{}
		return func(t *testing.T, v verb, d *datadriven.TestData) {
			if s.t, s.d = t, d; d.Cmd == "world" {
				s.testRank = newTestRank()
				s.text = out
			}
			v(s)
			s.print(s.Outputs())
		}
	})
}

// A verb carries out a command.
type verb = func(*script)

// script is the state of a script that is played.
type script struct {
	*testRank
	t *testing.T
	d *datadriven.TestData

	begun transport.Epoch
}

func (s *script) printf(format string, args ...any) { fmt.Fprintf(s.text, format, args...) }

// name is the first argument: of what the command is about.
func (s *script) name() string {
	if len(s.d.CmdArgs) == 0 || len(s.d.CmdArgs[0].Vals) > 0 {
		s.d.Fatalf(s.t, "%s: expected a name first", s.d.Cmd)
	}
	return s.d.CmdArgs[0].Key
}

func (s *script) commNamed(name string) *Comm {
	c := s.comm(name)
	if c == nil {
		s.d.Fatalf(s.t, "no communicator %q", name)
	}
	return c
}

// flag says whether a word stands behind the name.
func (s *script) flag(word string) bool {
	return slices.ContainsFunc(s.d.CmdArgs[1:], func(arg datadriven.CmdArg) bool { return arg.Key == word })
}

// on is the communicator that the command is about.
func (s *script) on() *Comm { return s.commNamed(s.name()) }

func (s *script) number(key string, or int) int {
	s.d.MaybeScanArgs(s.t, key, &or)
	return or
}

func (s *script) word(key, or string) string {
	s.d.MaybeScanArgs(s.t, key, &or)
	return or
}

// reports are those of a verdict: RANK:TEXT, with ! at the end if the rank unwound.
func (s *script) verdict(c *Comm) *errchan.Verdict {
	var reports []errchan.Report
	for _, arg := range s.d.CmdArgs[1:] {
		rank, text, ok := strings.Cut(arg.Key, ":")
		if !ok {
			continue
		}
		r, err := strconv.Atoi(rank)
		if err != nil {
			s.d.Fatalf(s.t, "report %q, expected RANK:TEXT", arg.Key)
		}
		data, corrupt := strings.CutSuffix(text, "!")
		reports = append(reports, errchan.Report{Rank: r, Data: []byte(data), Corrupt: corrupt})
	}
	var dead []int
	s.d.MaybeScanArgs(s.t, "dead", &dead)
	s.place = nil
	s.d.MaybeScanArgs(s.t, "at", &s.place)
	return c.testVerdict(reports, dead)
}

func (s *script) raise(corrupt bool) {
	c := s.on()
	raised := c.Raise(&Raised{Data: []byte(s.word("data", "")), Corrupt: corrupt, Leaving: s.flag("leaving")})
	if raised == nil {
		s.printf("refused\n")
	}
}

func (s *script) open(guard bool) {
	around := s.scopes[s.word("in", "")]
	name := s.name()
	s.scopes[name] = s.commNamed(s.word("on", "world")).Open(around, guard, name)
}

// after is the error behind a word; nil: nothing.
func after(e *Error) string {
	if e == nil {
		return ""
	}
	return " " + textOf(e)
}

// verbs are the commands of scripts. This rank is number 0 of each communicator, unless a command
// says otherwise. The name of the communicator that a command is about comes first.
var verbs = map[string]func(s *script){
	// world: a new rank, that has the communicator "world".
	"world": func(s *script) { s.make("world", nil, nil, nil) },
	// begin NAME: a Dup or the like of it begins, to be made with late.
	"begin": func(s *script) { s.begun = s.on().epoch },
	// make NAME [from=NAME] [under=NAME] [members=(R, …)] [late] [agreed]: a communicator
	// made from one, the world by default, whose errors or under's are its own, of those
	// ranks of the world. Late: it was begun when begin said. Agreed: all make it.
	"make": func(s *script) {
		var members []int
		s.d.MaybeScanArgs(s.t, "members", &members)
		from := s.commNamed(s.word("from", "world"))
		parent := s.commNamed(s.word("under", from.Owner.(string)))
		c := &Comm{Owner: s.name()}
		s.comms = append(s.comms, c)
		epoch := from.epoch
		if s.flag("late") {
			epoch = s.begun
		}
		if !s.Make(c, from, parent, epoch, s.flag("agreed"), members) {
			s.printf("late\n")
		}
	},
	// everywhere NAME: all members have their sides of it, or will.
	"everywhere": func(s *script) { s.on().Everywhere() },
	// end-of-job: no round ends any more.
	"end-of-job": func(s *script) { s.End(true) },
	// notice NAME by=R [corrupt]: the channel says that a round is open.
	"notice": func(s *script) {
		c := s.on()
		round := c.round
		if c.settling != nil { // the channel is a round ahead
			round++
		}
		c.Noticed(round, s.number("by", 1), s.flag("corrupt"))
	},
	// verdict NAME R:TEXT … [dead=(R, …)] [rank=R] [at=(N, …)]: the channel says that the
	// round is over, and all is done that follows. At: the path of the Try where it was raised.
	"verdict": func(s *script) {
		c := s.on()
		c.Resolved(s.verdict(c), s.number("rank", 0))
		s.carry()
	},
	// resolved, as verdict: the channel says that the round is over, and that agreements were
	// decided before; settled and moved have to follow.
	"resolved": func(s *script) {
		c := s.on()
		v := s.verdict(c)
		v.Settled = agreed
		if c.settling != nil {
			v.Round++
		}
		c.Resolved(v, s.number("rank", 0))
	},
	// settled NAME: what was agreed before the verdict is done.
	"settled": func(s *script) { s.on().Settled() },
	// moved NAME: the family is in its next epoch.
	"moved": func(s *script) { s.on().Moved() },
	// raise NAME data=TEXT [leaving]: the program signals an error.
	"raise": func(s *script) { s.raise(false) },
	// unwind NAME data=TEXT [leaving]: it leaves a Guard by an error.
	"unwind": func(s *script) { s.raise(true) },
	// lose NAME: it needs a process that has died.
	"lose": func(s *script) { s.on().Lose() },
	// died NAME rank=R: a process has died.
	"died": func(s *script) {
		if !s.on().Died(s.number("rank", 1)) {
			s.printf("known\n")
		}
	},
	// ack NAME n=N: the program acknowledges the first n of the dead.
	"ack": func(s *script) {
		n, all := s.on().Ack(s.number("n", 0))
		s.printf("acknowledged %d, all: %t\n", n, all)
	},
	// revoke NAME by=R: it is revoked. revoke-done has to follow.
	"revoke": func(s *script) {
		if !s.on().Revoked(s.number("by", 1)) {
			s.printf("known\n")
		}
	},
	// revoke-done NAME: what was pending has ended.
	"revoke-done": func(s *script) { s.on().RevokeDone() },
	// enter NAME [as=G]: a goroutine begins to wait on the communicator.
	"enter": func(s *script) {
		g := s.word("as", "")
		if _, waits := s.firsts[g]; waits {
			s.d.Fatalf(s.t, "goroutine %q waits already", g)
		}
		s.firsts[g] = s.enter(s.on())
	},
	// leave [as=G]: it does not wait any more.
	"leave": func(s *script) {
		g := s.word("as", "")
		first, waits := s.firsts[g]
		if !waits {
			s.d.Fatalf(s.t, "goroutine %q does not wait", g)
		}
		delete(s.firsts, g)
		s.EndWait(first)
	},
	// watch n=N: N more channels are watched; fewer, if N is negative.
	"watch": func(s *script) {
		if s.Watch(s.number("n", 1)) {
			s.Answer()
		}
	},
	// look NAME [repair]: what a Wait finds.
	"look": func(s *script) {
		m := Take
		if s.flag("repair") {
			m = TakeToRepair
		}
		s.printf("%s\n", textOfFinding(s.on().Look(m)))
	},
	// test NAME: what a future's Test finds.
	"test": func(s *script) { s.printf("%s\n", textOfFinding(s.test(s.on()))) },
	// err NAME: what Err finds.
	"err": func(s *script) {
		f, e := s.err(s.on())
		s.printf("%s\n", textOfFinding(f, e, false))
	},
	// knows NAME: does an operation that begins now know of the corruption?
	"knows": func(s *script) { s.printf("%t\n", s.on().Knows()) },
	// has-raised NAME: must what begins now reach nobody?
	"has-raised": func(s *script) { s.printf("%t\n", s.on().HasRaised()) },
	// try SCOPE on=NAME [in=SCOPE], guard likewise: a Try or Guard begins.
	"try":   func(s *script) { s.open(false) },
	"guard": func(s *script) { s.open(true) },
	// leave-scope SCOPE [own]: the function of a Try has returned, own: with an error of this rank.
	"leave-scope": func(s *script) {
		e, next := s.scopes[s.name()].Leave(s.flag("own"))
		s.printf("%s%s\n", [...]string{Return: "return", Signal: "signal", Await: "await"}[next], after(e))
	},
	// over SCOPE: what is it over with?
	"over": func(s *script) { s.printf("%s\n", cmp.Or(strings.TrimSpace(after(s.scopes[s.name()].Over())), "none")) },
	// failure SCOPE: which error has ended its context? The program is told.
	"failure": func(s *script) {
		scope := s.scopes[s.name()]
		e, pending := scope.Failure()
		if e != nil && e.Corrupt() {
			scope.comm.Know()
		}
		if text := after(e); pending {
			s.printf("pending\n")
		} else {
			s.printf("%s\n", cmp.Or(strings.TrimSpace(text), "none"))
		}
	},
	// in-vain SCOPE: has its context ended in vain?
	"in-vain": func(s *script) { s.printf("%t\n", s.scopes[s.name()].InVain()) },
	// late NAME: is an error that the program raises now not sent?
	"late": func(s *script) { s.printf("%t\n", s.on().Late()) },
	// end SCOPE: it returns.
	"end": func(s *script) { s.scopes[s.name()].Close() },
	// ask VOTE on=NAME: this rank has begun the barrier at the end of a TryAll.
	"ask": func(s *script) { s.votes[s.name()] = s.commNamed(s.word("on", "world")).Ask(s.name()) },
	// confirm VOTE: it is through the barrier, and says yes.
	"confirm": func(s *script) {
		if !s.votes[s.name()].Confirm() {
			s.printf("too late\n")
		}
	},
	// withdraw VOTE: an error has ended the barrier.
	"withdraw": func(s *script) { s.votes[s.name()].Withdraw() },
	// counted VOTE: the votes are.
	"counted": func(s *script) { s.votes[s.name()].Counted() },
	// forget VOTE: the TryAll returns.
	"forget": func(s *script) { s.votes[s.name()].End() },
	// close NAME: the program ends the use of the communicator.
	"close": func(s *script) { s.on().Close() },
	// pending NAME: something of this rank is, there.
	"pending": func(s *script) { s.pending[s.on()] = true },
	// idle NAME: nothing is any more, since when it was closed.
	"idle": func(s *script) {
		delete(s.pending, s.on())
		if !s.on().Forgotten() {
			s.printf("an error is on its way\n")
		}
	},
	// return: the program has ended.
	"return": func(s *script) { s.Leave() },
	// go: its process may go.
	"go": func(s *script) { s.Go() },
	// die: this process has died.
	"die": func(s *script) {
		if !s.Die() {
			s.printf("known\n")
		}
	},
	// fail NAME: messages do not move any more.
	"fail": func(s *script) { s.on().Fail().Face = nil },
	// show [NAME …]: what the rank knows, of all in the world's family if none is named.
	"show": func(s *script) {
		shown := s.world.Family()
		if len(s.d.CmdArgs) > 0 {
			shown = nil
			for _, arg := range s.d.CmdArgs {
				shown = append(shown, s.commNamed(arg.Key))
			}
		}
		for _, c := range shown {
			s.printf("%s: %s\n", c.Owner, s.state(c))
		}
		if s.holds > 0 {
			s.printf("holds %d\n", s.holds)
		}
	},
	// family NAME: it and what is derived from it.
	"family": func(s *script) {
		all := strings.Split(names(s.on().Family(), nil), ", ")
		slices.Sort(all[1:])
		s.printf("%s\n", strings.Join(all, " "))
	},
}
