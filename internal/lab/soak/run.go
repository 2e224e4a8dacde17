package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"runtime/debug"
	"slices"

	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/sim"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// A run is one schedule while it runs.
type run struct {
	plan
	rng       *rand.Rand
	w         *sim.World
	processes []*process
	teams     []*team // the first is the world
	out       io.Writer
	lossy     func([]byte) bool // of tests: which messages of error channels are lost

	events, deaths int
	digest         uint64
	err            error // the first failure
}

// A team is a communicator: its ranks, and their members.
type team struct {
	*run
	parent     *team
	id         errchan.Agreement // made it, unless it is original
	original   bool              // made when the run begins
	name       uint64            // identifies it
	ranks      []int             // ranks of the world
	generation int               // of its errors
	depth      int               // how many steps it is made from the world
	members    []*member         // nil: has not made its side
	proposals  map[errchan.Agreement][]proposal
}

// maxEvents is the limit of a schedule. None has come near it.
const maxEvents = 50e6

// newRun returns the run of a seed. If out is not nil, the run writes its trace there.
func newRun(seed uint64, out io.Writer) *run {
	rng := rand.New(rand.NewPCG(seed, 1)) // the World has a source of its own
	r := &run{plan: newPlan(seed, rng), rng: rng, out: out, digest: 14695981039346656037}
	r.w = sim.New(sim.Config{Ranks: r.ranks, Seed: seed, Model: r.model, Detect: r.delay, LoseInFlight: r.lose, Trace: out})
	sends := make([]int, r.ranks)
	world := r.newTeam(nil, errchan.Agreement{}, make([]int, r.ranks))
	world.original = true
	for i := range world.ranks {
		world.ranks[i] = i
	}
	for _, d := range r.plan.deaths {
		if sends[d.rank] = d.send; d.send == 0 {
			r.w.KillAt(d.at, d.rank)
		}
	}
	for i := range r.ranks {
		r.processes = append(r.processes, r.newProcess(i, sends[i]))
		r.w.At(0, i, func() {
			world.enter(i, r.w.Comm(i), nil, nil)
			r.processes[i].compute()
		})
	}
	return r
}

func (r *run) newTeam(parent *team, id errchan.Agreement, ranks []int) *team {
	t := &team{run: r, parent: parent, id: id, ranks: ranks,
		members: make([]*member, len(ranks)), proposals: make(map[errchan.Agreement][]proposal)}
	if parent != nil {
		t.depth = parent.depth + 1
	}
	r.teams = append(r.teams, t)
	return t
}

// teamOf returns the team that is made from another. One agreement may have two, if all ranks that
// made the first decision have died.
func (r *run) teamOf(from, under *team, id errchan.Agreement, ranks []int, name transport.Name) *team {
	digest := name.Digest(from.name)
	if i := slices.IndexFunc(r.teams, func(t *team) bool { return t.parent == from && t.name == digest }); i >= 0 {
		return r.teams[i]
	}
	t := r.newTeam(from, id, ranks)
	t.name, t.generation, t.original = digest, under.generation+1, name.Color > 0
	return t
}

// do runs the schedule; err says what failed.
func (r *run) do() {
	defer func() {
		if p := recover(); p != nil {
			r.fail("panic: %v\n%s", p, debug.Stack())
		}
	}()
	r.step()
	for i := range r.ranks {
		if r.w.Dead(i) {
			r.deaths++
		}
	}
	r.check(invariants)
	r.close()
	r.check(afterwards)
}

// step handles events until there are none.
func (r *run) step() {
	for r.err == nil && r.w.Step() {
		if r.events++; r.events > maxEvents {
			r.fail("P1: after %d events the ranks still send messages to each other", r.events)
		}
	}
}

func (r *run) check(all []invariant) {
	for _, i := range all {
		for _, t := range r.teams {
			if r.err == nil {
				if err := i.holds(t); err != nil {
					r.fail("%s: %w", i.name, err)
				}
			}
		}
	}
}

func (r *run) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

// note adds an event of this rank to the digest (FNV-1a) and the trace.
func (m *member) note(what string, values ...any) {
	r := m.run
	for _, v := range []int{m.world, m.generation, len(what), int(r.w.Now())} {
		r.digest = (r.digest ^ uint64(v)) * 1099511628211
	}
	if r.out != nil {
		fmt.Fprintf(r.out, "%12.3f µs  rank %d  ** %s", float64(r.w.RankNow(m.world))/1e3, m.world, what)
		for _, v := range values {
			fmt.Fprintf(r.out, " %+v", v)
		}
		if m.parent != nil {
			fmt.Fprintf(r.out, ", as rank %d of %d after %v", m.rank, len(m.ranks), m.id)
		}
		fmt.Fprintln(r.out)
	}
}
