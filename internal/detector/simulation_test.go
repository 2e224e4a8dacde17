package detector

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A simulation runs the machines of n ranks in virtual time. Messages take up to
// the latency, those of a pair of ranks stay in order.
type simulation struct {
	t       testing.TB
	name    string // of the run, for failures
	rng     *rand.Rand
	config  Config
	latency time.Duration
	delay   func(from, to int) time.Duration // random if nil

	now    time.Duration
	queue  []event // ascending in time
	ranks  []simulated
	last   map[[2]int]time.Duration // when the last message of a pair arrives
	deaths []death                  // ascending in time
	struck int                      // how many have struck
	doomed int                      // how many of these are still to die

	told int                   // how often a living rank has been told of a dead one
	lag  map[int]time.Duration // of each dead rank: from its death to the last told
}

type simulated struct {
	*Machine
	dead    bool
	died    time.Duration
	doomed  bool          // dies in the middle of its next output
	stalled time.Duration // until when it stands still
	ticks   time.Duration // when its earliest Tick is in the queue

	told       map[int]bool
	heartbeats int // sent, as are
	notices    int
	requests   int
	pings      int
}

type death struct {
	rank   int
	at     time.Duration
	midway bool // in the middle of its first output after that
}

type event struct {
	at   time.Duration
	to   int
	from int // -1: a Tick
	msg  Message
}

// newSimulation starts n ranks, within a timeout of each other.
func newSimulation(t testing.TB, name string, rng *rand.Rand, config Config, latency time.Duration, n int) *simulation {
	s := &simulation{t: t, name: name, rng: rng, config: config, latency: latency,
		ranks: make([]simulated, n), last: make(map[[2]int]time.Duration), lag: make(map[int]time.Duration)}
	for r := range s.ranks {
		start := time.Duration(rng.Int64N(int64(config.Timeout)))
		m, err := New(config, r, n, start)
		require.NoError(t, err)
		s.ranks[r] = simulated{Machine: m, told: make(map[int]bool), ticks: Never, stalled: start}
		s.schedule(r)
	}
	return s
}

// push puts an event behind those that are at the same time.
func (s *simulation) push(e event) {
	i := sort.Search(len(s.queue), func(i int) bool { return s.queue[i].at > e.at })
	s.queue = slices.Insert(s.queue, i, e)
}

// schedule puts a rank's Tick into the queue, unless an earlier one is in there,
// which will schedule the next.
func (s *simulation) schedule(r int) {
	if at := max(s.ranks[r].Deadline(), s.now); at < s.ranks[r].ticks && at < Never {
		s.ranks[r].ticks = at
		s.push(event{at: at, to: r, from: -1})
	}
}

// run runs the simulation until a time, or until done returns true.
func (s *simulation) run(until time.Duration, done func() bool) {
	for {
		if done != nil && done() {
			return
		}
		at := Never
		if s.struck < len(s.deaths) {
			at = s.deaths[s.struck].at
		}
		if len(s.queue) > 0 && s.queue[0].at < at {
			at = s.queue[0].at
		} else if at < Never && at <= until {
			s.now = at
			d := s.deaths[s.struck]
			s.struck++
			if d.midway {
				s.ranks[d.rank].doomed = true
				s.doomed++
			} else {
				s.kill(d.rank)
			}
			continue
		}
		if at > until || at == Never {
			s.now = until
			return
		}
		e := s.queue[0]
		s.queue = s.queue[1:]
		s.now = e.at
		s.handle(e)
	}
}

func (s *simulation) kill(rank int) {
	r := &s.ranks[rank]
	if r.doomed {
		s.doomed--
	}
	r.dead, r.died, s.lag[rank] = true, s.now, 0
	s.told -= len(r.told)
}

// stall lets a rank stand still, from now on: then it gets what has come meanwhile, and ticks late.
func (s *simulation) stall(rank int, duration time.Duration) {
	s.ranks[rank].stalled = s.now + duration
}

func (s *simulation) handle(e event) {
	r := &s.ranks[e.to]
	if r.dead {
		return
	}
	if e.at < r.stalled {
		if e.from < 0 {
			r.ticks = r.stalled
		}
		e.at = r.stalled
		s.push(e)
		return
	}
	if e.from >= 0 {
		b := Encode(e.msg)
		msg, err := Decode(b[:], len(s.ranks))
		if err == nil {
			err = r.Step(s.now, e.from, msg)
		}
		if err != nil { // require is slow
			require.NoError(s.t, err, s.name)
		}
	} else {
		r.ticks = Never
		r.Tick(s.now)
		if r.Deadline() <= s.now {
			require.Greater(s.t, r.Deadline(), s.now, s.name)
		}
	}
	s.carryOut(e.to)
	s.schedule(e.to)
}

func (s *simulation) carryOut(rank int) {
	r := &s.ranks[rank]
	out := r.Output()
	if r.doomed && len(out) > 0 {
		out = out[:s.rng.IntN(len(out))]
		defer s.kill(rank)
	}
	for _, o := range out {
		if o.Message.Kind == 0 {
			s.died(rank, o.Died)
			continue
		}
		switch o.Message.Kind {
		case Heartbeat:
			r.heartbeats++
		case Notice:
			r.notices++
		case newObserver:
			r.requests++
		case Ping:
			r.pings++
		case answer:
		}
		var delay time.Duration
		if s.delay != nil {
			delay = s.delay(rank, o.To)
		} else {
			delay = time.Duration(s.rng.Int64N(int64(s.latency) + 1))
		}
		pair := [2]int{rank, o.To}
		s.last[pair] = max(s.last[pair], s.now+delay)
		s.push(event{at: s.last[pair], to: o.To, from: rank, msg: o.Message})
	}
}

// died checks that nobody is told twice, and of the living not at all.
func (s *simulation) died(rank, who int) {
	r := &s.ranks[rank]
	if r.told[who] {
		require.Fail(s.t, "told twice", "%s: rank %d of rank %d", s.name, rank, who)
	}
	r.told[who] = true
	if s.ranks[who].dead {
		s.told++
		s.lag[who] = max(s.lag[who], s.now-s.ranks[who].died)
	}
}

// falselyAccused returns a rank that lives and that another has been told is dead.
func (s *simulation) falselyAccused() string {
	for r := range s.ranks {
		for who := range s.ranks[r].told {
			if !s.ranks[who].dead {
				return fmt.Sprintf("rank %d holds rank %d for dead", r, who)
			}
		}
	}
	return ""
}

// complete says whether all deaths have struck and all survivors been told.
func (s *simulation) complete() bool {
	return s.struck == len(s.deaths) && s.doomed == 0 && s.told == (len(s.ranks)-len(s.lag))*len(s.lag)
}

// Dead says whether this rank has been told that a rank is dead.
func (m *Machine) Dead(rank int) bool {
	return m.dead.has(rank, rank) || m.silent && rank == m.rank
}
