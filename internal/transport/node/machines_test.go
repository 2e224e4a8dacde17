package node

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/detector"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// machines is a job of several, whose time the test makes.
type machines struct {
	*testing.T
	job     *memoryJob
	jobs    []*Job
	now     atomic.Int64
	stopped []bool // processes that do nothing: the test has their lock
	busy    []bool // whose hearts beat, but that look for no packets
	mute    []bool // whose hearts do not beat
	ended   []bool
	told    []atomic.Value // the errors that programs are told of though they wait for nothing

	killing sync.Mutex
	kills   [][2]int // processes that have killed one that was declared dead, and those
}

var usual = detector.Config{Period: 25 * time.Millisecond, Timeout: 100 * time.Millisecond}

func startMachines(t *testing.T, of ...int) *machines { return startDetecting(t, usual, of...) }

func startDetecting(t *testing.T, config detector.Config, of ...int) *machines {
	m := &machines{T: t, job: &memoryJob{share: true, machines: of}, stopped: make([]bool, len(of)), busy: make([]bool, len(of)), mute: make([]bool, len(of)), ended: make([]bool, len(of)), told: make([]atomic.Value, len(of))}
	m.jobs = start(t, m.job, Options{Mortal: true, Detector: config, clock: func() time.Duration { return time.Duration(m.now.Load()) }})
	for r, j := range m.jobs {
		j.world.OnFailure(func(err error) { m.told[r].Store(&err) })
		j.engine.heart.kill = func(process int) bool {
			m.killing.Lock()
			defer m.killing.Unlock()
			m.kills = append(m.kills, [2]int{r, process})
			return true
		}
	}
	m.pass(4 * usual.Timeout)
	return m
}

// byMachine returns the processes of machine 1, and the others.
func byMachine(of []int) (one, others []int) {
	for p, machine := range of {
		if machine == 1 {
			one = append(one, p)
		} else {
			others = append(others, p)
		}
	}
	return one, others
}

// working are the processes that do something, and whose part has not failed.
func (m *machines) working() (all []*engine) {
	for r, j := range m.jobs {
		if !m.stopped[r] && !m.ended[r] && !j.engine.over.Load() {
			all = append(all, j.engine)
		}
	}
	return all
}

// settle waits until no packet is under way, nor the callback of an end.
func (m *machines) settle() {
	for idle := 0; idle < 20; idle++ {
		runtime.Gosched()
		for _, e := range m.working() {
			if m.busy[e.rank] {
				continue
			}
			if e.progress(2*len(m.jobs)) || e.fabric.(*watched).Network.(*memoryFabric).pending() {
				idle = 0
			}
		}
	}
}

// pending says whether packets have come that nobody has looked at.
func (m *memoryFabric) pending() bool {
	defer m.lock()()
	for source, packets := range m.packets {
		if len(packets) > 0 && !m.job.isCut(source, m.rank) {
			return true
		}
	}
	return false
}

// pass lets time pass, for hearts to beat as they should.
func (m *machines) pass(d time.Duration) {
	m.settle()
	const step = 5 * time.Millisecond
	for ; d > 0; d -= step {
		m.now.Add(int64(step))
		for _, e := range m.working() {
			if !m.mute[e.rank] {
				e.lock()
				e.heart.tick()
				e.unlock()
			}
		}
		m.settle()
	}
}

// end ends processes, of whose machine somebody sees it.
func (m *machines) end(processes ...int) {
	for _, r := range processes {
		m.ended[r] = true
		die(m.jobs[r])
	}
	for _, r := range processes {
		closeSockets(m.jobs[r].engine)
	}
}

func (m *machines) stop(processes ...int) {
	for _, r := range processes {
		m.stopped[r] = true
		m.jobs[r].engine.mu.Lock()
	}
}

func (m *machines) resume(processes ...int) {
	for _, r := range processes {
		m.stopped[r] = false
		m.jobs[r].engine.mu.Unlock()
	}
}

// cut has the packets of some processes to all others wait, and, if both is set, those of
// the others to them.
func (m *machines) cut(both bool, some ...int) {
	m.job.mu.Lock()
	m.job.cut = func(source, dest int) bool {
		return slices.Contains(some, source) && !slices.Contains(some, dest) ||
			both && slices.Contains(some, dest) && !slices.Contains(some, source)
	}
	m.job.mu.Unlock()
}

func (m *machines) heal() {
	m.job.mu.Lock()
	m.job.cut = nil
	m.job.mu.Unlock()
}

// holds checks whom some processes hold for dead, and that their fabrics have been told so.
func (m *machines) holds(processes []int, dead ...int) {
	m.Helper()
	for _, r := range processes {
		e := m.jobs[r].engine
		e.lock()
		var killed []int
		for p, is := range e.dead {
			if is {
				killed = append(killed, p)
			}
		}
		err := e.err
		e.unlock()
		require.NoError(m, err, "process %d", r)
		require.Equal(m, dead, killed, "process %d", r)
		fabric := e.fabric.(*watched).Network.(*memoryFabric)
		m.job.mu.Lock()
		told := slices.Compact(slices.Sorted(slices.Values(fabric.lost)))
		m.job.mu.Unlock()
		require.Equal(m, dead, told, "process %d", r)
	}
}

// fenced checks that processes have learnt that others continue without them, and were not killed.
func (m *machines) fenced(processes ...int) {
	m.Helper()
	require.Empty(m, m.kills)
	for _, r := range processes {
		require.ErrorIs(m, m.jobs[r].world.Failed(), transport.ErrFenced, "process %d", r)
		require.Eventually(m, func() bool { return m.told[r].Load() != nil }, time.Minute, time.Millisecond, "process %d, whose program waits for nothing", r)
		require.ErrorIs(m, *m.told[r].Load().(*error), transport.ErrFenced)
		require.ErrorIs(m, recv(m.jobs[r].world, 0, 0).wait(), transport.ErrFenced, "process %d", r)
	}
}

// works checks that processes can still send each other, and themselves, messages.
func (m *machines) works(processes ...int) {
	m.Helper()
	var all []*request
	for _, r := range processes {
		for _, p := range processes {
			all = append(all, recv(m.jobs[r].world, p, 77), send(m.jobs[p].world, r, 77, 1))
		}
	}
	m.settle()
	for _, r := range all {
		require.NoError(m, r.wait())
	}
}

func all(n int) (ranks []int) {
	for r := range n {
		ranks = append(ranks, r)
	}
	return ranks
}
