package node

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/mpicx/go-mpicx/internal/bell"
	"github.com/mpicx/go-mpicx/internal/detector"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// A Job is one process's part in a job.
type Job struct {
	engine *engine
	world  *comm
}

// Options say how to take part in a job. They are the same at all processes.
type Options struct {
	// Mortal says that the others survive when a process dies.
	Mortal bool
	// Detector finds machines that fall silent, if processes are mortal and the job spans
	// several machines, or the program has asked for pings.
	Detector detector.Config

	clock func() time.Duration // for tests, which make the heart beat themselves
}

// Begin begins to take part in the job.
func Begin(fabric Fabric, o Options) (*Job, error) {
	mortal := o.Mortal
	// Until idle.Go nobody else uses the engine, so mu is not held. Only the fabric may call wake
	// from another goroutine, which touches only channels and atomics.
	e := newEngine(fabric, mortal)
	began, err := fabric.Start(mortal, e.wake)
	if err != nil {
		return nil, err
	}
	e.name, e.rank, e.size, e.core.crowded = began.Name, began.Rank, began.Size, began.Crowded
	e.dead, e.leads = make([]bool, e.size), make([]leads, e.size)
	e.reserve, _ = fabric.(Reserve)
	// The watchman pings all processes, and would be the last one itself, which may not have begun:
	// see newHeart.
	if e.later = began.Later; e.later > 0 && o.Detector.Ping {
		return nil, errors.New("a detector that pings, and processes that may be started later: expected only one of them")
	}
	e.machines, e.far, e.reason = began.Machines, farLimit, began.Reason
	several := slices.Max(e.machines) > slices.Min(e.machines)
	if several {
		e.far = max(farLimit, began.Packet-headerLength)
	}
	e.share(began.Near, began.Memory, began.Marks)
	// One process that shares no memory with this one is enough to make the fabric's packets
	// possible, for which no bell rings.
	e.near = bell.Rings && began.Wakes && len(e.in) == e.size
	// Otherwise each process sees the deaths of all others by itself.
	if mortal && (several || o.Detector.Ping && e.size > 1) {
		now := o.clock
		if began := time.Now(); now == nil {
			now = func() time.Duration { return time.Since(began) }
		}
		if e.heart, err = newHeart(e, fabric.(*watched), o.Detector, now); err != nil {
			return nil, err
		}
		e.longest = max(period, min(e.longest, o.Detector.Period/4))
	}
	j := &Job{e, e.newComm(world, e.livenessOf(world), e.rank, nil, 0)}
	e.idle.Go(e.goOn) // from here on mu protects everything
	if e.heart != nil && o.clock == nil {
		e.idle.Go(e.beat)
	}
	return j, nil
}

// World returns the communicator of all processes.
func (j *Job) World() transport.Comm { return j.world }

// Later returns the number of processes that may be started later. They are the last ones.
func (j *Job) Later() int { return j.engine.later }

// Respawn makes the launcher start a process and all before it, unless they were started.
func (j *Job) Respawn(process int) { j.engine.reserve.Respawn(process) }

// Underway makes progress until nothing of this process is under way, at most 1000 times. It
// returns how much still is: requests of the fabric, transfers, offers, and packets that wait for
// room.
func (j *Job) Underway() (n int) {
	for range 1000 {
		j.engine.progress(1)
		moving, offered := j.underway()
		if n = moving + offered; n == 0 {
			break
		}
	}
	return n
}

// Break makes the fabric fail, for tests.
func (j *Job) Break(err error) {
	j.engine.mu.Lock()
	j.engine.fail(err)
	j.engine.unlock()
}

// End waits until all processes have called it, and ends the job. Until then this process takes
// part in what the others still do. If the fabric has failed the job can't be ended. End then
// returns the error, and when this process has exited the launcher ends the others. If the others
// can continue without this process, End kills it instead, unless they have declared it dead. When
// all processes have called End, later failures are ignored.
func (j *Job) End() error {
	e := j.engine
	// Others may wait for bytes that only this process can move. It does not wait for offers: a
	// wrong program may leave one that nobody ever accepts.
	for since := time.Now(); ; since = e.rest(since) {
		if moving, _ := j.underway(); moving == 0 {
			break
		}
	}
	// Between Leave and EverybodyLeft this process makes progress as before. Messages of error
	// channels pass through it, and others may still read its memory.
	e.mu.Lock()
	err := e.err
	if err == nil {
		err = e.fabric.Leave(e.mortal)
	}
	e.mu.Unlock()
	for since, all := time.Now(), false; err == nil && !all; {
		since = e.rest(since)
		e.mu.Lock()
		if err = e.err; err == nil {
			all, err = e.fabric.EverybodyLeft()
		}
		e.mu.Unlock()
	}
	// goOn and beat use the fabric, so they end before it does. wake ends the sleep of goOn.
	close(e.stop)
	e.wake()
	e.idle.Wait()
	e.mu.Lock()
	// Nobody would execute the condemned later: Never is after all their times (H7).
	if err == nil && e.heart != nil {
		e.heart.execute(detector.Never)
	}
	if err == nil {
		if err := e.fabric.Finalize(slices.Contains(e.dead, true)); err != nil {
			fmt.Fprintln(os.Stderr, "mpicx: the job is done; what has failed is its end:", err)
		}
		// The failure below is none of the program's, which has ended.
		for _, c := range e.comms {
			c.onFailure = nil
		}
		e.fail(&transport.LibraryError{Call: "Finalize", Text: "the job has been ended"}) // for goroutines that have been left behind
	}
	e.unlock()
	// The others have noted the death of a fenced process already, so it only has to fall silent.
	// In any other case they have to see this process die, or they would wait for it.
	if errors.Is(err, transport.ErrFenced) {
		e.fabric.Desert()
	} else if err != nil && e.mortal {
		fmt.Fprintln(os.Stderr, "mpicx:", err)
		e.fabric.Kill()
	}
	return err
}

// underway returns how much is moving (requests of the fabric, transfers, and packets that wait for
// room), and how many offers have not been accepted.
func (j *Job) underway() (moving, offered int) {
	e := j.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		return 0, 0
	}
	// Backlogs wait for room, and a process that has not begun makes none.
	lagging := e.lagging
	for p := e.size - e.later; p < e.size; p++ {
		if o := e.out[p]; o != nil && p >= e.reserve.Begun() { // it will never come
			lagging -= len(o.backlog) + len(o.remainders)
		}
	}
	return len(e.transfers) + len(e.coming) + lagging + e.fabric.Requests(), len(e.offers)
}

// rest makes progress. Nothing has moved since a time; rest returns it, or the present time if
// something has moved now. If nothing has moved for a while it sleeps for an eighth of that time,
// because what its caller waits for may ring no bell. It holds no lock, and does not become the
// goroutine that makes progress: its callers must not be parked.
func (e *engine) rest(since time.Time) time.Time {
	if e.progress(1) {
		return time.Now()
	}
	if waited := time.Since(since); e.mayGiveUp(waited) {
		time.Sleep(min(waited/8, longestRest))
	} else {
		runtime.Gosched()
		yield()
	}
	return since
}

// longestRest is the longest sleep of rest. Meanwhile goOn takes packets.
const longestRest = 10 * time.Millisecond
