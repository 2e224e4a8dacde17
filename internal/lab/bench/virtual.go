package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/sim"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/ulfmbackend"
)

// cray is like the one in paper 000, section 4: a Cray XC30 with its Aries network at 8 GB/s. A
// core combines 5 GB/s.
var cray = sim.LogGP{
	Latency:        1200 * time.Nanosecond,
	Overhead:       300 * time.Nanosecond,
	Gap:            400 * time.Nanosecond,
	GapPerByte:     0.125,
	CombinePerByte: 0.2,
}

// wire is the time of a message that nothing delays.
func wire() time.Duration { return cray.Latency + 2*cray.Overhead }

// never is later than any run takes.
const never = time.Hour

// A simulation is n ranks in virtual time. Survivors learn of a death after the time detection.
// Nothing on cray is random, so one run of a program is enough.
type simulation struct {
	*sim.World
	ranks   []virtualRank
	chooser collective.Chooser
	void    []byte // see collective.Exchange
}

// virtualRank is one rank of a simulation: its communicator, and its error channel.
type virtualRank struct {
	sim     *simulation
	rank    int
	comm    transport.Comm
	channel *ulfmbackend.Channel
	number  int // of collective operations so far
}

func newSimulation(n int, detection time.Duration) *simulation {
	return newBareSimulation(n, detection).withChannels()
}

func (s *simulation) withChannels() *simulation {
	for i := range s.ranks {
		r := &s.ranks[i]
		s.At(0, i, func() {
			dup, err := r.comm.Sub(transport.ErrorChannelName(), nil)
			must(err)
			r.channel = ulfmbackend.New(dup, 0, r.comm.Epoch(), (*revocable)(r))
			r.channel.Listen()
		})
	}
	return s
}

// newBareSimulation is newSimulation without error channels.
func newBareSimulation(n int, detection time.Duration) *simulation {
	return simulationOf(sim.Config{Ranks: n, Model: cray, Detect: func(*rand.Rand) time.Duration { return detection }})
}

func simulationOf(c sim.Config) *simulation {
	c.Events = 1e9
	s := &simulation{World: sim.New(c), ranks: make([]virtualRank, c.Ranks)}
	s.chooser = collective.ChooserFor(s.Comm(0))
	for i := range s.ranks {
		r := &s.ranks[i]
		r.sim, r.rank, r.comm = s, i, s.Comm(i)
	}
	return s
}

// now is the rank's clock.
func (r *virtualRank) now() time.Duration { return r.sim.RankNow(r.rank) }

// whenFree continues the rank's program when its CPU is free.
func (r *virtualRank) whenFree(f func()) { r.sim.After(0, r.rank, f) }

// run runs a collective operation on comm. All ranks begin these operations in the same order.
func (r *virtualRank) run(comm transport.Comm, a collective.Algorithm, done func(error)) {
	r.number++
	(&collective.Exchange{Void: r.sim.void}).Start(comm, comm.Epoch(), transport.CollectiveTag(r.number), a, ended(done))
}

type ended func(error)

func (f ended) Ended(err error) { f(err) }

// barrier is mpicx's barrier if each rank has a CPU.
func (r *virtualRank) barrier(comm transport.Comm, done func(error)) {
	r.run(comm, collective.AllreduceDoubling(collective.Reduction{Op: func(_, _, _ []byte) {}}), done)
}

// combine is mpicx's Allreduce of buf. All ranks may share buf, because it has no contents.
func (r *virtualRank) combine(comm transport.Comm, buf []byte, done func(error)) {
	r.run(comm, r.sim.chooser.Allreduce(nil, &collective.Reduction{Recv: buf, Element: 8, Op: func(dst, _, _ []byte) {
		r.sim.Compute(r.rank, cray.Combining(len(dst)))
	}}), done)
}

// allreduce is mpicx's Allreduce of one int.
func (r *virtualRank) allreduce(done func(error)) {
	r.run(r.comm, collective.AllreduceDoubling(collective.Reduction{Recv: words(1), Op: func(dst, left, right []byte) {
		binary.NativeEndian.PutUint64(dst, get(left)+get(right))
	}}), done)
}

// agree is mpicx's Agree.
func (r *virtualRank) agree(done func(error)) {
	r.channel.Propose(r.channel.Reserve(r.comm.Epoch(), errchan.Agree), errchan.Proposal{Flag: 1}, func(d *errchan.Decision, err error) {
		if err == nil && d.Flag != 1 {
			err = fmt.Errorf("rank %d: agreed on %d", r.rank, d.Flag)
		}
		done(err)
	})
}

// revocable is a virtualRank as the client of its error channel: a revoke ends pending operations,
// as in package mpicx.
type revocable virtualRank

var errRevoked = errors.New("revoked")

func (r *revocable) Revoked(int)               { r.comm.Revoke(errRevoked) }
func (r *revocable) Released()                 {}
func (r *revocable) Died(int)                  {}
func (r *revocable) Noticed(uint64, int, bool) {}
func (r *revocable) Asked([]byte)              {}
func (r *revocable) Resolved(*errchan.Verdict) {}
