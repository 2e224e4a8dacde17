package node

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// died is a listener that is told of deaths.
type died struct {
	mu    sync.Mutex
	more  sync.Cond
	ranks []int
}

func listen(c *comm) *died {
	d := new(died)
	d.more.L = &d.mu
	c.Listen(d)
	return d
}

func (d *died) Take(int, []byte)          {}
func (d *died) Next() (int, []byte, bool) { return 0, nil, false }
func (d *died) Purpose([]byte) string     { return "" }

func (d *died) Died(rank int) {
	d.mu.Lock()
	d.ranks = append(d.ranks, rank)
	d.mu.Unlock()
	d.more.Broadcast()
}

// wait returns the first n that have died, in order.
func (d *died) wait(n int) []int {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.ranks) < n {
		d.more.Wait()
	}
	return slices.Sorted(slices.Values(d.ranks))
}

// endWith checks how requests end.
func endWith(t *testing.T, want error, requests ...*request) {
	t.Helper()
	for i, r := range requests {
		require.Equal(t, want, r.wait(), i)
	}
}

func comms(jobs []*Job) (all []*comm) {
	for _, j := range jobs {
		all = append(all, j.world)
	}
	return all
}

func die(j *Job) {
	each(1, func(int) { j.world.Die() })
	j.Break(errors.New("killed")) // what a process does no more, this goroutine must not
}

// untilLeft waits until s knows that the program of a process has ended.
func untilLeft(c *comm, process int) {
	for !c.HasReturned(process) {
		runtime.Gosched()
	}
}

// A collective tag: what has it needs all.
const collective = transport.AnyTag - 1

// both runs a test with packets through the fabric, and through shared memory.
func both(t *testing.T, test func(t *testing.T, share bool)) {
	for _, share := range []bool{false, true} {
		t.Run(fmt.Sprintf("shared memory %t", share), func(t *testing.T) { test(t, share) })
	}
}

// H1: a death ends what needs the dead, and nothing else, whenever it begins.
func TestDeathEndsWhatNeedsIt(t *testing.T) {
	both(t, func(t *testing.T, share bool) {
		jobs := startMemory(t, 3, share, true)
		s := comms(jobs)
		told := listen(s[0])
		dead := &transport.DeadError{Rank: 2}
		needs := func() []*request {
			return []*request{recv(s[0], 2, 0), recv(s[0], 1, collective), send(s[0], 2, 0, 1<<16)}
		}
		before := needs()
		living, anybody := recv(s[0], 1, 1), recv(s[0], transport.AnySource, 2)
		die(jobs[2])
		endWith(t, dead, before...)
		require.Equal(t, []int{2}, told.wait(1))
		endWith(t, dead, append(needs(), send(s[0], 2, 0, 1))...)
		endWith(t, nil, send(s[1], 0, 1, 1<<16), living, send(s[1], 0, 2, 1), anybody)
		require.Equal(t, []int{2}, told.wait(1))
	})
}

// A death of which the fabric does not hear is seen all the same, and the fabric is told;
// nobody who ends in order is dead.
func TestDeathThatTheFabricDoesNotSee(t *testing.T) {
	jobs := startMemory(t, 3, true, true)
	s := comms(jobs)
	told := listen(s[0])
	endWith(t, nil, send(s[2], 0, 1, 1))
	pending := []*request{recv(s[0], 2, 0), recv(s[1], 0, collective)}
	closeSockets(jobs[2].engine)
	endWith(t, &transport.DeadError{Rank: 2}, pending...)
	endWith(t, nil, recv(s[0], 2, 1))
	require.Equal(t, []int{2}, told.wait(1))
	for r, lost := range [][]int{{2}, {2}, nil} {
		m := jobs[r].engine.fabric.(*watched).Network.(*memoryFabric)
		m.job.mu.Lock()
		require.Equal(t, lost, m.lost, "process %d", r)
		m.job.mu.Unlock()
	}
}

// Messages that a process sent before it died arrive, though nobody had looked for them.
func TestLastOfTheDead(t *testing.T) {
	both(t, func(t *testing.T, share bool) {
		const packets = 3 * seldom // the fabric is asked for deaths before all have been looked at
		jobs := startMemory(t, 2, share, true)
		s := comms(jobs)
		s[0].e.mu.Lock()
		for i := range packets {
			endWith(t, nil, send(s[1], 0, i, 1))
		}
		die(jobs[1])
		s[0].e.mu.Unlock()
		endWith(t, &transport.DeadError{Rank: 1}, recv(s[0], 1, 2*packets))
		for i := range packets {
			endWith(t, nil, recv(s[0], 1, i))
		}
		endWith(t, &transport.DeadError{Rank: 1}, recv(s[0], 1, 7))
	})
}

// Messages that the dead have sent on a communicator come even if the receiver makes it later;
// those that they had only offered do not.
func TestMessagesOfTheDeadBeforeTheCommunicator(t *testing.T) {
	const id = 77
	e, _, _ := alone(t, true)
	e.came(1, header{kind: whole, to: id, tag: 5, length: 1, signature: 0}, []byte{9})
	e.came(1, header{kind: offer, to: id, tag: 6, length: 1 << 20, id: 1}, nil)
	e.buries(1)
	e.mu.Lock()
	c := e.newComm(id, e.livenessOf(world), 0, nil, 0)
	e.unlock()
	r := recv(c, 1, 5)
	endWith(t, nil, r)
	require.Equal(t, byte(9), r.Buf[0])
	endWith(t, &transport.DeadError{Rank: 1}, recv(c, 1, 6))
	require.Empty(t, e.transfers)
}

// A process whose program has ended lives on until somebody needs it: what it
// has sent comes, and what only it could serve ends as if it had been killed, at all.
func TestLeftUntilNeeded(t *testing.T) {
	both(t, func(t *testing.T, share bool) {
		jobs := startMemory(t, 3, share, true)
		s := comms(jobs)
		told := []*died{listen(s[0]), listen(s[1]), listen(s[2])}
		posted, own := recv(s[1], 0, 3), recv(s[1], 2, 4)
		offered := send(s[1], 0, 5, 1<<16)
		s[1].Leave(false)
		endWith(t, nil, recv(s[0], 1, 5), offered)
		endWith(t, nil, send(s[0], 1, 3, 1), posted) // in a packet: it waits for nobody
		endWith(t, &transport.DeadError{Rank: 1}, recv(s[0], 1, 5))
		endWith(t, transport.ErrDied, own)
		for _, d := range told {
			require.Equal(t, []int{1}, d.wait(1))
		}
		endWith(t, &transport.DeadError{Rank: 1}, recv(s[2], 0, collective))
		endWith(t, transport.ErrDied, send(s[1], 0, 0, 1))
	})
}

// A receive from anybody needs a process that has left only if all others have, and
// the program waits for it.
func TestLeftAndReceiveFromAnybody(t *testing.T) {
	both(t, func(t *testing.T, share bool) {
		s := comms(startMemory(t, 3, share, true))
		told := listen(s[0])
		probes := []*request{recv(s[1], 0, 1), recv(s[1], 0, 2)}
		r := &request{Request: transport.Request{Peer: transport.AnySource}}
		r.start(s[0].Irecv)
		s[1].Leave(false)
		untilLeft(s[0], 1)
		r.awaited.Store(true)
		s[0].Look() // process 2 may send yet
		endWith(t, nil, send(s[0], 1, 1, 1), probes[0])
		r.awaited.Store(false)
		s[2].Leave(false)
		untilLeft(s[0], 2)
		s[0].Look() // nobody waits
		endWith(t, nil, send(s[0], 1, 2, 1), probes[1])
		r.awaited.Store(true)
		s[0].Look()
		require.Subset(t, []int{1, 2}, told.wait(1))
		require.False(t, r.ended(), "its program decides what becomes of it: H3")
		require.True(t, s[0].Cancel(&r.Request))
	})
}

// A family is one program's: a process that has left one has not left another.
func TestFamiliesAreApart(t *testing.T) {
	both(t, func(t *testing.T, share bool) {
		jobs := startMemory(t, 2, share, true)
		var first, second [2]*comm
		for r, j := range jobs {
			for i, to := range []*[2]*comm{&first, &second} {
				c, err := j.World().Sub(transport.Name{Seq: uint64(i + 1)}, nil)
				require.NoError(t, err)
				to[r] = c.(*comm)
			}
		}
		first[1].Leave(true)
		endWith(t, &transport.DeadError{Rank: 1}, recv(first[0], 1, 0))
		endWith(t, nil, recv(second[0], 1, 0), send(second[1], 0, 0, 1<<16))
	})
}

// Without ULFM a death is the end: every request ends with an error that says so.
func TestDeathWithoutULFM(t *testing.T) {
	both(t, func(t *testing.T, share bool) {
		jobs := startMemory(t, 3, share, false)
		s := comms(jobs)
		pending := []*request{recv(s[0], 1, 0), recv(s[1], 0, 0)}
		die(jobs[2])
		endWith(t, &transport.JobEndedError{Process: 2}, pending...)
		require.Error(t, s[0].Failed())
		require.Error(t, recv(s[0], 1, 0).wait())
	})
}

// A process whose program has ended is needed for nothing, unless its call is another one, or its
// epoch is over. If processes are not mortal it answers so.
func TestNeedOfWhatHasLeft(t *testing.T) {
	for _, test := range []struct {
		name         string
		h            header
		epoch        bool   // it is over
		want, mortal []kind // of what is sent, if processes are not mortal and if they are
	}{
		{"for the next call", header{tag: transport.CollectiveTag(2), signature: bcast}, false, []kind{left, gone}, []kind{left, dead}},
		{"for a message", header{tag: 3}, false, []kind{left, gone}, []kind{left, dead}},
		{"in another call", header{tag: transport.CollectiveTag(1), signature: barrier}, false, []kind{left, reminder}, []kind{left, reminder}},
		{"in an epoch that is over", header{tag: transport.CollectiveTag(2), signature: bcast}, true, []kind{left}, []kind{left}},
	} {
		for mortal, want := range map[bool][]kind{false: test.want, true: test.mortal} {
			t.Run(fmt.Sprintf("%s, mortal %t", test.name, mortal), func(t *testing.T) {
				e, c, _ := alone(t, mortal)
				e.out[1] = nil // the fabric has all packets
				require.Equal(t, 1, c.Call(0, bcast))
				c.Leave(false)
				if test.epoch {
					c.Advance(1, errors.New("an error"))
				}
				test.h.kind, test.h.to, test.h.id = need, world, uint64(world)
				e.came(1, test.h, nil)
				var got []kind
				for _, p := range e.fabric.(*memoryFabric).job.processes[1].packets[0] {
					got = append(got, kind(p[36]))
				}
				require.Equal(t, want, got)
				require.Equal(t, slices.Contains(want, dead), c.liveness.expired)
			})
		}
	}
}

// If processes are not mortal, requests end that need one that has left, when its messages have
// come.
func TestLeftWithoutULFM(t *testing.T) {
	both(t, func(t *testing.T, share bool) {
		s := comms(startMemory(t, 3, share, false))
		call, offered := recv(s[0], 1, collective), send(s[1], 0, 5, 1<<16)
		any := &request{Request: transport.Request{Peer: transport.AnySource}}
		any.awaited.Store(true)
		any.start(s[0].Irecv)
		s[1].Leave(false)
		endWith(t, &transport.LeftError{Rank: 1}, call)
		endWith(t, nil, recv(s[0], 1, 5), offered)
		endWith(t, &transport.LeftError{Rank: 1}, recv(s[0], 1, 5), send(s[0], 1, 5, 1<<16))
		endWith(t, nil, send(s[2], 0, 6, 1), recv(s[0], 2, 6))
		s[2].Leave(false)
		endWith(t, &transport.LeftError{Rank: transport.AnySource}, any)
	})
}

// A rank that has released a communicator answers whoever waits for it there, but not in calls that
// it has made; a rank that has not answers nobody, and expires only if its program has ended.
func TestNeedOfWhatHasReleased(t *testing.T) {
	next := header{tag: transport.CollectiveTag(2), signature: bcast}
	for _, test := range []struct {
		name   string
		kind   kind
		h      header
		does   func(c *comm)
		answer bool
	}{
		{"for a message", need, header{tag: 3}, (*comm).Release, true},
		{"for a call that it has made", need, header{tag: transport.CollectiveTag(1), signature: bcast}, (*comm).Release, false},
		{"for the next call", reminder, next, (*comm).Release, true},
		{"for another epoch", reminder, header{tag: transport.CollectiveTag(1), signature: bcast, epoch: transport.Epoch(0).Next(0)}, (*comm).Release, true},
		{"which has not", reminder, next, func(*comm) {}, false},
		{"in a program that continues", need, header{tag: 3, id: uint64(world)}, func(*comm) {}, false},
		{"which has left instead", need, header{tag: 3}, func(c *comm) { c.Leave(false) }, false},
		{"and left", need, header{tag: 3, id: uint64(world)}, func(c *comm) { c.Release(); c.Leave(false) }, true},
	} {
		for _, mortal := range []bool{false, true} {
			e, c, _ := alone(t, mortal)
			require.Equal(t, 1, c.Call(0, bcast))
			test.does(c)
			test.h.kind, test.h.to = test.kind, world
			e.came(2, test.h, nil)
			var answers int
			for _, p := range e.fabric.(*memoryFabric).job.processes[2].packets[0] {
				if kind(p[36]) == gone {
					answers++
				}
			}
			require.Equal(t, test.answer, answers == 1, "%s, mortal %t", test.name, mortal)
			require.False(t, c.liveness.expired, test.name)
			require.NoError(t, e.err)
		}
	}
}

// A send that was begun after its peer was asked does not end with the answer, because a receive
// may take it.
func TestGoneBeforeAnOffer(t *testing.T) {
	_, c, _ := alone(t, true)
	for _, awaited := range []bool{false, true} {
		asked := int(c.e.lastID)
		r := send(c, 2, 5, 1<<16)
		if awaited {
			asked = int(c.e.lastID)
		}
		c.e.came(2, header{kind: gone, to: world, tag: transport.CollectiveTag(0), length: asked}, nil)
		require.Equal(t, awaited, r.ended())
		c.Cancel(&r.Request)
	}
}
