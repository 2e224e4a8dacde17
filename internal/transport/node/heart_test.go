package node

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
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

// settle waits until no packet is under way, nor news of an end.
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

// fenced checks that processes have learnt that others go on without them, and were not killed.
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

// long is when all have been told of the deaths of processes of a machine, wherever they stand
// in the ring: see package detector's bound_test.go.
func long(deaths int) time.Duration {
	return time.Duration(deaths*deaths+deaths+3) * usual.Timeout
}

// A machine that falls silent is dead, with all its processes, to all others: what
// needs one of them ends.
func TestSilentMachine(t *testing.T) {
	for _, of := range [][]int{{0, 0, 0, 1, 1, 1}, {0, 1}, {1, 0, 1, 0, 1}, {0, 0, 0, 0, 1}, {0, 1, 1, 1, 1, 2, 2}} {
		t.Run(fmt.Sprint(of), func(t *testing.T) {
			m := startMachines(t, of...)
			lost, rest := byMachine(of)
			waits := recv(m.jobs[rest[0]].world, lost[0], 0)
			m.end(lost...) // at once: nobody is left who sees it
			m.pass(usual.Timeout / 2)
			m.holds(rest)
			m.pass(long(len(lost)))
			m.holds(rest, lost...)
			require.Equal(t, &transport.DeadError{Rank: lost[0]}, waits.wait())
			m.works(rest...)
			m.pass(4 * usual.Timeout)
			m.works(rest...)
		})
	}
}

// What a machine's processes see, they tell those of others, without any timeout.
func TestToldDeaths(t *testing.T) {
	m := startMachines(t, 0, 0, 1, 1, 2, 2, 2)
	told := listen(m.jobs[0].world)
	m.end(3)
	for left := true; left; { // its end is seen, in real time
		m.settle()
		left = slices.ContainsFunc([]int{0, 1, 2, 4, 5, 6}, func(r int) bool {
			e := m.jobs[r].engine
			e.lock()
			defer e.unlock()
			return !e.dead[3]
		})
	}
	require.Equal(t, []int{3}, told.wait(1))
	m.holds([]int{0, 1, 2, 4, 5, 6}, 3)
	m.pass(20 * usual.Timeout)
	m.holds([]int{0, 1, 2, 4, 5, 6}, 3)
}

// Processes that are stopped are not declared dead as long as another process of their machine
// vouches for them, or if the one that looks sees their ends itself. When they continue, they do not
// declare others dead.
func TestStoppedProcess(t *testing.T) {
	for _, test := range []struct {
		of    []int
		ping  bool
		stops [][]int // one after the other
	}{
		{[]int{0, 0, 1, 1, 1}, false, [][]int{{3}, {0}}},
		{[]int{0, 0, 1, 1, 2, 2, 3, 3}, true, [][]int{{1}, {7}}},
		{[]int{0, 0, 0, 0, 0}, true, [][]int{{0, 1, 2, 3}}},
	} {
		t.Run(fmt.Sprint(test.of, test.ping), func(t *testing.T) {
			config := usual
			config.Ping = test.ping
			m := startDetecting(t, config, test.of...)
			processes := all(len(test.of))
			for _, stopped := range test.stops {
				m.stop(stopped...)
				m.pass(20 * usual.Timeout)
				m.holds(slices.DeleteFunc(slices.Clone(processes), func(p int) bool { return slices.Contains(stopped, p) }))
				m.resume(stopped...)
				m.pass(20 * usual.Timeout)
				m.holds(processes)
			}
			m.works(processes...)
		})
	}
}

// A process that looks for no packets, since its goroutines compute, lives, and holds nobody for
// dead.
func TestBusyProcess(t *testing.T) {
	m := startMachines(t, 0, 0, 1)
	for r := range 3 {
		for !m.jobs[r].engine.driving.try() {
			runtime.Gosched()
		}
		m.busy[r] = true
		m.pass(20 * usual.Timeout)
		m.holds(all(3))
		m.busy[r] = false
		m.jobs[r].engine.driving.leave()
	}
	m.works(all(3)...)
}

// Whatever a process sends says that it lives, for as long as it sends.
func TestAnyPacketIsASignOfLife(t *testing.T) {
	m := startMachines(t, 0, 1)
	m.mute[1] = true
	for range 50 {
		m.works(0, 1)
		m.pass(usual.Timeout / 2)
	}
	m.holds(all(2))
	m.pass(2 * usual.Timeout)
	m.holds([]int{0}, 1)
	m.mute[1] = false
	m.pass(usual.Timeout)
	m.fenced(1)
}

// All processes of a machine that stands still are dead: when they go on, they are told, and end.
func TestStoppedMachineIsFenced(t *testing.T) {
	m := startMachines(t, 0, 0, 0, 1, 1)
	waits := recv(m.jobs[3].world, 0, 0)
	m.stop(3, 4)
	m.pass(long(2))
	m.holds(all(3), 3, 4)
	m.resume(3, 4)
	m.pass(20 * usual.Timeout)
	m.fenced(3, 4)
	require.ErrorIs(t, waits.wait(), transport.ErrFenced)
	m.holds(all(3), 3, 4)
	m.works(all(3)...)
}

// startDeclaring starts machines where process 4 has just been declared dead.
func startDeclaring(t *testing.T) *machines {
	m := startMachines(t, 0, 0, 1, 1, 1, 1, 1)
	m.stop(4, 5, 6, 2) // 5, 6 and 2 are asked whether 4 lives
	for living := m.jobs[3].engine; !living.dead[4]; {
		m.pass(5 * time.Millisecond)
	}
	return m
}

// A process that is declared dead and lives is killed a period later, by the processes of its
// machine.
func TestDeclaredDeadIsKilled(t *testing.T) {
	m := startDeclaring(t)
	m.pass(usual.Period - 5*time.Millisecond)
	require.Empty(t, m.kills)
	m.pass(5 * time.Millisecond)
	require.Equal(t, [][2]int{{3, 4}}, m.kills)
	m.resume(5, 6, 2)
	m.pass(20 * usual.Timeout)
	m.holds([]int{0, 1, 2, 3, 5, 6}, 4)
	require.ElementsMatch(t, [][2]int{{3, 4}, {5, 4}, {6, 4}, {2, 4}}, m.kills)
	m.resume(4) // it was told as well
	m.pass(4 * usual.Timeout)
	require.ErrorIs(t, m.jobs[4].world.Failed(), transport.ErrFenced)
}

// At the latest it is killed when the job ends for the others.
func TestDeclaredDeadIsKilledInTheEnd(t *testing.T) {
	m := startDeclaring(t)
	m.resume(5, 6, 2)
	m.settle()
	m.holds([]int{0, 1, 2, 3, 5, 6}, 4)
	require.Empty(t, m.kills)
	each(len(m.jobs), func(r int) {
		if r != 4 {
			assert.NoError(t, m.jobs[r].End())
			m.job.processes[r].deserted = true // the test does not end it again
		}
	})
	require.ElementsMatch(t, [][2]int{{2, 4}, {3, 4}, {5, 4}, {6, 4}}, m.kills)
	m.resume(4)
}

// Two parts of a network that is cut go on. When it is whole again, the smaller one ends.
func TestCutNetwork(t *testing.T) {
	for _, of := range [][]int{{0, 0, 0, 1, 1}, {1, 0, 0}, {0, 0, 1, 1}, {1, 1, 2, 0, 0, 0, 2}} {
		t.Run(fmt.Sprint(of), func(t *testing.T) {
			m := startMachines(t, of...)
			small, great := byMachine(of)
			m.cut(true, small...)
			m.pass(long(len(of)))
			m.holds(small, great...)
			m.holds(great, small...)
			m.works(small...)
			m.works(great...)
			m.heal()
			m.pass(4 * usual.Timeout)
			m.fenced(small...)
			m.holds(great, small...)
			m.works(great...)
			for _, r := range small {
				require.ErrorIs(t, m.jobs[r].End(), transport.ErrFenced)
				m.ended[r] = true
			}
		})
	}
}

// With a quorum the smaller part ends while the network is cut; of two equal parts both do.
func TestQuorum(t *testing.T) {
	for _, test := range []struct {
		of, ends []int
		ping     bool
	}{
		{[]int{0, 0, 0, 1, 1}, []int{3, 4}, false},
		{[]int{1, 0, 0}, []int{0}, false},
		{[]int{0, 0, 1, 1}, all(4), false},
		{[]int{2, 1, 1, 0, 0, 0, 2}, []int{1, 2}, false},
		{[]int{0, 0, 0, 1, 1}, []int{3, 4}, true},
	} {
		t.Run(fmt.Sprint(test.of, test.ping), func(t *testing.T) {
			config := usual
			config.Quorum, config.Ping = true, test.ping
			m := startDetecting(t, config, test.of...)
			cut, _ := byMachine(test.of)
			rest := slices.DeleteFunc(all(len(test.of)), func(p int) bool { return slices.Contains(test.ends, p) })
			m.cut(true, cut...)
			m.pass(4 * long(len(test.of))) // with pings the ring is slow
			for _, r := range test.ends {
				require.ErrorIs(t, recv(m.jobs[r].world, 0, 0).wait(), transport.ErrNoQuorum, "process %d", r)
			}
			m.fenced(test.ends...)
			m.holds(rest, cut...)
			m.works(rest...)
			for _, r := range test.ends {
				require.ErrorIs(t, m.jobs[r].End(), transport.ErrFenced)
				m.ended[r] = true
			}
		})
	}
}

// In the ring those of a machine are apart: if machines have as many processes, in turn; and
// one that has more than all others has these spread among its own.
func TestAround(t *testing.T) {
	for _, c := range []struct{ machines, want []int }{
		{[]int{5, 5, 2, 2}, []int{0, 2, 1, 3}},
		{[]int{0, 0, 0, 1, 1, 1, 2, 2, 2}, []int{0, 3, 6, 1, 4, 7, 2, 5, 8}},
		{[]int{0, 1, 0, 1, 0, 1}, []int{0, 1, 2, 3, 4, 5}},
		{[]int{0, 0, 0, 0, 0, 0, 1, 2, 3}, []int{0, 1, 2, 6, 3, 7, 4, 5, 8}},
		{[]int{7, 3}, []int{0, 1}},
	} {
		require.Equal(t, c.want, around(c.machines), "machines %v", c.machines)
	}
}

// What no process sends is garbage, and nothing else is.
func TestGarbageForHearts(t *testing.T) {
	for _, c := range []struct {
		h    header
		rest []byte
		ok   bool
	}{
		{header{kind: beat}, []byte{byte(detector.Heartbeat), 0, 0, 0, 0, 0, 0, 0, 0}, true},
		{header{kind: beat}, []byte{byte(detector.Heartbeat)}, false},
		{header{kind: beat}, []byte{byte(detector.Notice), 0, 0, 0, 0, 5, 0, 0, 0}, false},
		{header{kind: ask, id: 1}, nil, true},
		{header{kind: ask, id: 2}, nil, true}, // it does not know, and says nothing
		{header{kind: ask, id: 4}, nil, false},
		{header{kind: ask, id: 1 << 63}, nil, false},
		{header{kind: vouch, id: 3}, nil, true},
		{header{kind: vouch, id: 0}, nil, false},
		{header{kind: vouch, id: 1}, nil, false},
		{header{kind: vouch, id: 4}, nil, false},
	} {
		t.Run(fmt.Sprintf("%v %d %x", c.h.kind, c.h.id, c.rest), func(t *testing.T) {
			m := startMachines(t, 0, 0, 1, 1)
			e := m.jobs[0].engine
			e.lock()
			err := e.heart.take(2, c.h, c.rest)
			aboutItself := e.heart.take(1, header{kind: vouch, id: 0}, nil) // from its own machine
			e.unlock()
			require.Error(t, aboutItself)
			require.Equal(t, c.ok, err == nil, "%v: %v", c, err)
			m.settle()
		})
	}
	none := startMemory(t, 2, true, true)[0].engine
	require.Nil(t, none.heart)
	require.Error(t, none.heart.take(1, header{kind: beat}, nil))
	_, err := newHeart(none, nil, detector.Config{}, func() time.Duration { return 0 })
	require.Error(t, err)
}
