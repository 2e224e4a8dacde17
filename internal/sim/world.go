package sim

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// Config describes a World.
type Config struct {
	Ranks int
	Seed  uint64
	Model Model // nil: messages take no time
	// Detect draws the time from a death until a survivor learns of it; nil: from 50 µs to 1 ms.
	Detect func(rng *rand.Rand) time.Duration
	// LoseInFlight is the probability that a message under way from a rank that has died is lost,
	// with all later messages to the same rank. The others arrive after the death.
	LoseInFlight float64
	SharedCores  bool      // see transport.Features
	Weightless   bool      // messages of the program have a length and no contents: no bytes are copied
	Events       int       // after this many Run gives up; 0: a hundred million
	Trace        io.Writer // has a line for each event; nil: none
}

// A World is a job of ranks, and their virtual time.
type World struct {
	cfg   Config
	rng   *rand.Rand
	ranks []process
	comm  *communicator // of all ranks

	agenda  agenda
	now     time.Duration
	seq     uint64
	current int32 // the rank whose event is being handled, or nobody

	communicators, sent, left, deaths int
	free                              []*message        // for reuse
	broken                            map[[2]int32]bool // pairs of ranks between which a message was lost
}

const nobody = -1

// A process is one rank of the job, with its CPU and its network interface.
type process struct {
	w    *World
	rank int32

	cpu      time.Duration // when it has finished its events so far
	injected time.Duration // when the last message left
	link     time.Duration // when the next one can
	busy     bool          // an event has begun
	ready    []*event      // events that wait for the CPU

	sides []*side // that it has made
	sent  int

	dead  bool
	died  time.Duration
	known []int32 // the dead that it knows of
}

// New returns a world in which nothing happens yet.
func New(cfg Config) *World {
	if cfg.Model == nil {
		cfg.Model = LogGP{}
	}
	if cfg.Detect == nil {
		cfg.Detect = func(rng *rand.Rand) time.Duration {
			return 50*time.Microsecond + time.Duration(rng.Int64N(int64(950*time.Microsecond)))
		}
	}
	if cfg.Events == 0 {
		cfg.Events = 100e6
	}
	w := &World{cfg: cfg, rng: rand.New(rand.NewPCG(cfg.Seed, 0)), ranks: make([]process, cfg.Ranks),
		current: nobody, broken: make(map[[2]int32]bool)}
	for i := range w.ranks {
		w.ranks[i].w, w.ranks[i].rank = w, int32(i)
	}
	w.comm = w.newCommunicator(nil, cfg.Ranks, 0)
	for i := range w.comm.sides {
		w.comm.sides[i].make()
	}
	return w
}

// Comm returns the rank's side of the communicator of all ranks.
func (w *World) Comm(rank int) transport.Comm { return &w.comm.sides[rank] }

// At schedules f at the rank, at time t or when its CPU is free after that, unless the rank has
// died by then. Events for the same time happen in the order of the calls.
func (w *World) At(t time.Duration, rank int, f func()) {
	w.schedule(t, &event{rank: int32(rank), f: func() {
		w.trace(rank, "runs")
		f()
	}})
}

// After schedules f at the rank, when its clock has advanced by d.
func (w *World) After(d time.Duration, rank int, f func()) { w.At(w.RankNow(rank)+d, rank, f) }

// Compute occupies the rank's CPU.
func (w *World) Compute(rank int, d time.Duration) { w.ranks[rank].cpu = w.RankNow(rank) + d }

// Now is the time of the event that is being handled.
func (w *World) Now() time.Duration { return w.now }

// RankNow is the rank's clock: now or, if its CPU is busy, when that has finished.
func (w *World) RankNow(rank int) time.Duration { return w.ranks[rank].clock() }

func (p *process) clock() time.Duration { return max(p.w.now, p.cpu) }

// Messages is the number of messages sent so far, including those that were dropped or lost.
func (w *World) Messages() int { return w.sent }

// Sent is the number of messages that the rank has sent.
func (w *World) Sent(rank int) int { return w.ranks[rank].sent }

// Left is the number of ranks that have called Leave.
func (w *World) Left() int { return w.left }

// Run handles events until there are none. It returns an error if there are more than
// Config.Events.
func (w *World) Run() error {
	for range w.cfg.Events {
		if !w.Step() {
			return nil
		}
	}
	return fmt.Errorf("after %d events and %v the ranks still send messages to each other", w.cfg.Events, w.now)
}

// Step handles the next event. It returns false if there is none.
func (w *World) Step() bool {
	e, ok := w.agenda.pop()
	if !ok {
		return false
	}
	w.now = e.at
	if e.rank == nobody {
		e.f()
		return true
	}
	p := &w.ranks[e.rank]
	switch {
	case p.dead:
		if e.m != nil {
			e.m.recycle()
		}
	case !e.begun:
		if e.m == nil || !w.loses(e.m) {
			p.ready = append(p.ready, e.event)
		}
	default:
		p.busy = false
		p.do(e.event)
	}
	p.serve()
	return true
}

// serve gives the CPU to the events that wait for it.
func (p *process) serve() {
	for !p.busy && len(p.ready) > 0 {
		w, e := p.w, p.ready[0]
		p.ready = remove(p.ready, 0)
		idle := p.cpu <= w.now
		p.cpu = p.clock()
		if e.m != nil {
			p.cpu += w.cfg.Model.overhead(w.rng)
		}
		switch {
		case p.cpu == w.now:
			p.do(e)
			continue
		case idle: // due one overhead from now, like all entries of line
			w.seq++
			w.agenda.append(entry{p.cpu, w.seq, e})
		default:
			w.push(p.cpu, e)
		}
		e.begun, p.busy = true, true
	}
}

func (p *process) do(e *event) {
	p.w.current = p.rank
	if e.m != nil {
		e.m.to.deliver(e.m)
	} else {
		e.f()
	}
	p.w.current = nobody
}

// remove is slices.Delete of one element, which is often the first of many.
func remove[T any](list []*T, i int) []*T {
	if i > 0 || len(list) == 1 {
		return slices.Delete(list, i, i+1)
	}
	list[0] = nil
	return list[1:]
}

// schedule adds an event to the agenda, after those of the same time.
func (w *World) schedule(at time.Duration, e *event) {
	w.seq++
	w.agenda.push(entry{max(at, w.now), w.seq, e})
}

// push adds an event to the agenda: after those of the same time or, if the model is random,
// anywhere among them.
func (w *World) push(at time.Duration, e *event) {
	w.seq++
	tie := w.seq
	if w.cfg.Model.random() {
		tie |= w.rng.Uint64() << 40
	}
	w.agenda.push(entry{at, tie, e})
}
