package node

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/mpicx/go-mpicx/internal/detector"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// heart runs package detector at this process, over the engine's packets. It detects machines that
// have fallen silent, and tells all processes of each death that one process learns of. A process
// has a heart if processes are mortal, and the job spans several machines or the program has asked
// for pings.
//
// Any packet from the emitter counts as a heartbeat. A process that its observer has not heard for
// half of the timeout may only be stopped or slow. The observer therefore asks some other processes
// of that machine, which would see the end of the process at once. If one of them vouches for it,
// this counts as a heartbeat too. So processes are declared dead only if all of the asked processes
// of their machine are silent. If the observer is itself stopped, it detects deaths later.
//
// A process that is declared dead but lives is told so by other machines, and ends with ErrFenced
// (H7). It cannot if it is stopped, or if it computes and takes no packets. So if it still takes
// part in the job a period later, the living processes of its machine kill it.
//
// The engine's mu protects it. Times are those of now.
type heart struct {
	e       *engine
	ends    *watched               // sees the ends of this machine's processes
	kill    func(process int) bool // ends.kill; tests replace it
	machine *detector.Machine      // its ranks are places in the ring
	process []int                  // the process at each place in the ring
	place   []int                  // the place of each process in the ring
	now     func() time.Duration   // the clock; the time since the job began
	emitter int                    // the process that this one observes; -1: none
	heard   bool                   // a packet from the emitter has come since the last tick
	// declared are the processes that the machine has declared dead, in order, until findDeaths
	// notes their deaths.
	declared []int
	grace    time.Duration // the time from condemn until execute kills the process: a period
	// condemned are the processes of this machine that may have to be killed, in the order of
	// their times.
	condemned []condemned
}

// A condemned process is a process of this machine that has been declared dead. If it still lives
// at a certain time, it is killed.
type condemned struct {
	process int
	at      time.Duration
}

// witnesses is the number of other processes of a machine that are asked whether a process lives.
const witnesses = 3

// newHeart returns the heart of a process, or an error if the configuration is invalid. Now is its
// clock.
func newHeart(e *engine, ends *watched, config detector.Config, now func() time.Duration) (*heart, error) {
	ring := around(e.machines)
	// The watchman has the last place in the ring. It is the last process, because that is a spare
	// if there are spares.
	if config.Ping {
		last := slices.Index(ring, e.size-1) + 1
		ring = append(ring[last:], ring[:last]...)
	}
	h := &heart{e: e, ends: ends, kill: ends.kill, process: ring, place: make([]int, e.size), now: now, emitter: -1, grace: config.Period}
	for place, p := range h.process {
		h.place[p] = place
	}
	var err error
	h.machine, err = detector.New(config, h.place[e.rank], e.size, now())
	return h, err
}

// around returns the processes in the order of the ring. Processes of one machine are far from each
// other: the i-th of the n processes of the k-th of m machines is (i + (k+½)/m)/n of the way around
// the ring, with i and k from 0. Machines with the same number of processes take turns.
func around(machines []int) []int {
	number, count := make(map[int]int), make(map[int]int)
	for _, m := range machines {
		if _, known := number[m]; !known {
			number[m] = len(number)
		}
		count[m]++
	}
	where := make([]float64, len(machines))
	ring, before := make([]int, len(machines)), make(map[int]int)
	for p, m := range machines {
		ring[p] = p
		where[p] = (float64(before[m]) + (float64(number[m])+0.5)/float64(len(number))) / float64(count[m])
		before[m]++
	}
	slices.SortStableFunc(ring, func(p, q int) int { return cmp.Compare(where[p], where[q]) })
	return ring
}

// beat calls tick whenever a tick is due, until the job ends. It runs on a goroutine of its own.
// goOn could not do it: it calls callbacks, in which the program's functions may run for a long
// time, and silence for that time would be taken for death.
func (e *engine) beat() {
	timer := time.NewTimer(0)
	for {
		select {
		case <-e.stop:
			return
		case <-timer.C:
		}
		e.lock()
		next := e.heart.tick()
		if e.err == nil {
			e.mu.Unlock() // other goroutines call the callbacks: that may take long, and would delay the next beat
		} else {
			e.unlock()
		}
		timer.Reset(next)
	}
}

// tick sends the heartbeats that are due, asks about suspects, and notes deaths. It returns the
// time until the next tick is due.
func (h *heart) tick() (next time.Duration) {
	if h.e.err != nil {
		return time.Hour
	}
	// Before a process is suspected, this process makes sure that it has not been slow itself: it
	// may have been stopped, or not have taken packets for a while.
	late := false
	var seen []int // suspects of this machine: this process would see their ends, so they live
	h.machine.Suspects(h.now(), func(place int) {
		late = true
		if p := h.process[place]; h.ends.sees(p) {
			seen = append(seen, p)
		}
	})
	if late {
		h.e.takeAll()
	}
	// The clock is read again, because the packets may have taken long.
	now := h.now()
	for _, p := range seen {
		h.hear(now, p)
	}
	if h.heard {
		h.hear(now, h.emitter)
	}
	h.machine.Tick(now)
	h.carryOut()
	next = h.machine.Suspects(now, func(place int) { h.ask(h.process[place]) })
	next = min(next, h.machine.Deadline())
	h.emitter, h.heard = h.process[h.machine.Emitter()], false
	if h.emitter == h.e.rank {
		h.emitter = -1
	}
	if len(h.declared) > 0 {
		h.e.findDeaths()
	}
	if h.execute(now); len(h.condemned) > 0 {
		next = min(next, h.condemned[0].at)
	}
	return min(next-now, time.Hour)
}

// condemn is called when the engine has noted the death of a process that was declared dead. It
// tells the network. If the process is of this machine, it is killed after the grace.
func (h *heart) condemn(process int) {
	h.ends.Lost(process)
	if h.e.machines[process] == h.e.machines[h.e.rank] {
		h.condemned = append(h.condemned, condemned{process, h.now() + h.grace})
	}
}

// execute kills the condemned processes whose time has come and that still live. It does nothing if
// the engine has failed, for example because this process has itself been declared dead.
func (h *heart) execute(now time.Duration) {
	for h.e.err == nil && len(h.condemned) > 0 && now >= h.condemned[0].at {
		p := h.condemned[0].process
		h.condemned = h.condemned[1:]
		if h.kill(p) {
			fmt.Fprintf(os.Stderr, "mpicx: rank %d was declared dead and lives: rank %d of its machine has killed it\n", p, h.e.rank)
		}
	}
}

// takeAll takes all packets that have come, so that no process is suspected whose packets only
// wait. The goroutine that usually takes them may be in a function of the program that computes.
func (e *engine) takeAll() {
	for n, came := 0, true; came && n < lastPackets && e.err == nil; n++ {
		near := e.look()
		far, _ := e.fabric.Poll((*Sink)(e), max(mixed, e.size))
		came = near || far
	}
}

// ask asks other living processes of a suspect's machine, at most witnesses, whether the suspect
// lives. They are the next processes after it.
func (h *heart) ask(suspect int) {
	e := h.e
	for i, asked := 1, 0; i < e.size && asked < witnesses; i++ {
		p := (suspect + i) % e.size
		if e.machines[p] != e.machines[suspect] || e.dead[p] {
			continue
		}
		asked++
		if p != e.rank {
			e.sendPacket(p, &header{kind: ask, id: uint64(suspect)}, nil)
		}
	}
}

// take handles a packet from another process's heart. It returns an error if no process sends such
// a packet. h is nil if this process has no heart: then no process sends such a packet.
func (h *heart) take(source int, p header, rest []byte) error {
	if h == nil {
		return fmt.Errorf("kind %d, where no process falls silent", p.kind)
	}
	e, about := h.e, p.id
	if p.kind != beat && about >= uint64(e.size) {
		return fmt.Errorf("kind %d about process %d of %d", p.kind, about, e.size)
	}
	switch p.kind {
	case beat:
		msg, err := detector.Decode(rest, e.size)
		if err == nil {
			err = h.machine.Step(h.now(), h.place[source], msg)
		}
		if err != nil {
			return err
		}
	case ask:
		if h.ends.sees(int(about)) {
			e.sendPacket(source, &header{kind: vouch, id: about}, nil)
		}
	// Only a process of the same machine would see the end of the other.
	case vouch:
		if int(about) == e.rank || e.machines[about] != e.machines[source] {
			return fmt.Errorf("a word for process %d, of another machine", about)
		}
		h.hear(h.now(), int(about))
	}
	h.carryOut()
	return nil
}

// hear gives the machine a heartbeat of another process, which has shown that it lives.
func (h *heart) hear(now time.Duration, process int) {
	if err := h.machine.Step(now, h.place[process], detector.Message{Kind: detector.Heartbeat}); err != nil {
		h.e.fail(err) // only if the process is this one, which does not happen
	}
}

// died tells the other processes of a death that the engine has noted.
func (h *heart) died(process int) {
	h.machine.Lose(h.now(), h.place[process])
	h.carryOut()
}

// carryOut carries out the machine's outputs. It sends to processes that have just been declared
// dead, because they may live and have to be told. It can, because the engine and the fabric note
// these deaths only later, in findDeaths.
func (h *heart) carryOut() {
	e := h.e
	for _, o := range h.machine.Output() {
		switch p := h.process[o.Died]; {
		// A dead process of this machine has ended, or will be killed, and need not be told.
		case o.Message.Kind != 0:
			if to := h.process[o.To]; !e.dead[to] || e.machines[to] != e.machines[e.rank] {
				b := detector.Encode(o.Message)
				e.sendPacket(to, &header{kind: beat}, b[:])
			}
		// Both end this process (H7): it does not know a majority to be alive, or was declared
		// dead.
		case o.Minority:
			e.fail(transport.ErrNoQuorum)
		case p == e.rank:
			e.fail(transport.ErrFenced)
		default:
			h.declared = append(h.declared, p)
		}
	}
}
