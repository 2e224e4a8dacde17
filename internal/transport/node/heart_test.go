package node

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/detector"
	"github.com/mpicx/go-mpicx/internal/transport"
)

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

// Processes tell those of other machines of the ends that they see, without any timeout.
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
// vouches for them, or if the one that looks sees their ends itself. When they continue, they do
// not declare others dead.
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

// All processes of a machine that stands still are dead: when they continue, they are told, and end.
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

// Two parts of a network that is cut continue. When it is whole again, the smaller one ends. With a
// quorum the smaller part ends while the network is cut; of two equal parts both do.
func TestCutNetwork(t *testing.T) {
	for _, test := range []struct {
		of           []int // machine 1 is cut off
		quorum, ping bool
		ends         []int
	}{
		{[]int{0, 0, 0, 1, 1}, false, false, []int{3, 4}},
		{[]int{1, 0, 0}, false, false, []int{0}},
		{[]int{0, 0, 1, 1}, false, false, []int{2, 3}},
		{[]int{1, 1, 2, 0, 0, 0, 2}, false, false, []int{0, 1}},
		{[]int{0, 0, 0, 1, 1}, true, false, []int{3, 4}},
		{[]int{1, 0, 0}, true, false, []int{0}},
		{[]int{0, 0, 1, 1}, true, false, all(4)},
		{[]int{2, 1, 1, 0, 0, 0, 2}, true, false, []int{1, 2}},
		{[]int{0, 0, 0, 1, 1}, true, true, []int{3, 4}},
	} {
		t.Run(fmt.Sprint(test.of, test.quorum, test.ping), func(t *testing.T) {
			config := usual
			config.Quorum, config.Ping = test.quorum, test.ping
			m := startDetecting(t, config, test.of...)
			small, great := byMachine(test.of)
			m.cut(true, small...)
			m.pass(4 * long(len(test.of))) // with pings the ring is slow
			if test.quorum {
				for _, r := range test.ends {
					require.ErrorIs(t, recv(m.jobs[r].world, 0, 0).wait(), transport.ErrNoQuorum, "process %d", r)
				}
			} else {
				m.holds(small, great...)
				m.holds(great, small...)
				m.works(small...)
				m.works(great...)
				m.heal()
				m.pass(4 * usual.Timeout)
			}
			m.fenced(test.ends...)
			rest := slices.DeleteFunc(all(len(test.of)), func(p int) bool { return slices.Contains(test.ends, p) })
			m.holds(rest, small...)
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

// Packets of hearts that no process sends are garbage, and no others are.
func TestGarbageForHearts(t *testing.T) {
	m := startMachines(t, 0, 0, 1, 1)
	e := m.jobs[0].engine
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
		e.lock()
		err := e.heart.take(2, c.h, c.rest)
		e.unlock()
		require.Equal(t, c.ok, err == nil, "%v: %v", c, err)
	}
	e.lock()
	require.Error(t, e.heart.take(1, header{kind: vouch, id: 0}, nil), "about itself, from its own machine")
	e.unlock()
	m.settle()
	none := startMemory(t, 2, true, true)[0].engine
	require.Nil(t, none.heart)
	require.Error(t, none.heart.take(1, header{kind: beat}, nil))
	_, err := newHeart(none, nil, detector.Config{}, func() time.Duration { return 0 })
	require.Error(t, err)
}
