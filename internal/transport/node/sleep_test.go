package node

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/bell"
)

// A process does not sleep while there is a packet, though progress lets others go first.
func TestNoSleepWithAPacket(t *testing.T) {
	c, _ := pair(false)
	e := c[1].e
	e.near = true
	require.Equal(t, time.Second, e.longestSleep(time.Hour))
	require.True(t, c[0].TrySend(1, 1, 0, 0, []byte{1}))
	e.wanted.Store(1)
	require.Zero(t, e.longestSleep(time.Hour))
}

// sleeper is a waiting.Sleeper that is woken when it is closed.
type sleeper chan struct{}

func (s sleeper) Sleep() <-chan struct{} { return s }
func (s sleeper) Rise()                  {}
func (s sleeper) Woken() bool {
	select {
	case <-s:
		return true
	default:
		return false
	}
}

// A process that sleeps is woken by all that it may wait for. It would sleep for an hour.
func TestWhatWakesASleeper(t *testing.T) {
	if !bell.Rings {
		t.Skip("here a process looks from time to time")
	}
	var outlives [2]chan bool
	t.Cleanup(func() { // when the job has ended
		for _, woken := range outlives {
			require.False(t, <-woken)
		}
	})
	jobs := startMemory(t, 2, true, true)
	if runtime.GOMAXPROCS(0) > 1 {
		jobs[0].world.Watch(-1) // it sleeps because nothing comes, the other one because somebody waits
	}
	for _, j := range jobs {
		j.engine.lock()
		j.engine.shortest, j.engine.longest = time.Hour, time.Hour
		j.engine.unlock()
	}
	asleep := func(r int) {
		for !jobs[r].engine.bell.Load().Armed() {
			runtime.Gosched()
		}
	}
	await := func(r int, s sleeper, ended chan struct{}) chan bool {
		woken := make(chan bool, 1)
		go func() { woken <- jobs[r].world.Await(s, ended) }()
		return woken
	}
	for range 10 {
		for _, length := range []int{8, 100_000, 1 << 20} {
			r := recv(jobs[1].world, 0, 3)
			asleep(0)
			asleep(1)
			s := send(jobs[0].world, 1, 3, length)
			<-r.done
			<-s.done
		}
		for _, woken := range []bool{false, true} { // by its context, by another goroutine
			s, ended := make(sleeper), make(chan struct{})
			over := await(1, s, ended)
			asleep(1)
			if woken {
				close(s)
			} else {
				close(ended)
			}
			require.Equal(t, woken, <-over)
		}
	}
	for range 5 { // what begins while nobody waits: a burst for which the ring has no room, and a pull
		var received, sent []*request
		asleep(0)
		for range 100 {
			sent = append(sent, send(jobs[0].world, 1, 3, nearLimit))
		}
		for range 100 {
			received = append(received, recv(jobs[1].world, 0, 3))
		}
		sent = append(sent, send(jobs[0].world, 1, 4, 1<<20))
		asleep(0)
		asleep(1)
		for _, r := range append(received, append(sent, recv(jobs[1].world, 0, 4))...) {
			<-r.done
		}
	}
	for i := range outlives {
		outlives[i] = await(1, make(sleeper), nil)
	}
	r, over := recv(jobs[1].world, 0, 3), await(0, make(sleeper), nil)
	asleep(0)
	asleep(1)
	die(jobs[0]) // whose fabric fails
	require.False(t, <-over)
	closeSockets(jobs[0].engine)
	<-r.done
	require.Error(t, r.Err)
}
