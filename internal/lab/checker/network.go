package main

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// network delays each message of the error channels, and each news of a death, by a different fake
// time. Without it, goroutine ranks would have them at once. Those from one rank stay in order, as
// a transport promises.
func network(seed uint64) func(transport.Comm) transport.Comm {
	return func(c transport.Comm) transport.Comm {
		return &slow{c, rand.New(rand.NewPCG(seed, uint64(c.Rank()))), new(sync.Mutex), new(atomic.Bool)}
	}
}

// slow is one rank's side of a communicator.
type slow struct {
	transport.Comm
	rnd *rand.Rand // of the rank, for all its communicators
	mu  *sync.Mutex
	// dead: its process has died, and nothing reaches it any more.
	dead *atomic.Bool
}

// Sub makes a communicator with the same delays.
func (c *slow) Sub(name transport.Name, members []int) (transport.Comm, error) {
	made, err := c.Comm.Sub(name, members)
	if err != nil {
		return nil, err
	}
	return &slow{made, c.rnd, c.mu, c.dead}, nil
}

func (c *slow) Listen(l transport.Listener) {
	c.Comm.Listen(&slowListener{Listener: l, comm: c, from: make([]line, c.Size())})
}

// delay draws one delay. Most are 0.
func (c *slow) delay() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rnd.IntN(3) > 0 {
		return 0
	}
	return time.Duration(1+c.rnd.IntN(8)) * tick
}

type slowListener struct {
	transport.Listener
	comm *slow
	from []line // by rank
}

// line contains what one rank has sent and is not delivered yet.
type line struct {
	mu      sync.Mutex
	waiting []func()
	busy    bool // a timer or a goroutine delivers the calls that wait
}

func (l *slowListener) Take(from int, payload []byte) {
	l.from[from].put(l.comm.delay(), func() {
		if !l.comm.dead.Load() {
			l.Listener.Take(from, payload)
		}
	})
}

func (l *slowListener) Died(rank int) {
	if rank == l.comm.Rank() {
		l.comm.dead.Store(true)
		l.Listener.Died(rank)
		return
	}
	l.from[rank].put(l.comm.delay(), func() { l.Listener.Died(rank) })
}

// put schedules a call of f, after d and after everything that was put before.
func (q *line) put(d time.Duration, f func()) {
	q.mu.Lock()
	q.waiting = append(q.waiting, f)
	if q.busy {
		q.mu.Unlock()
		return
	}
	q.busy = true
	q.mu.Unlock()
	if d == 0 {
		q.deliver()
	} else {
		time.AfterFunc(d, q.deliver)
	}
}

func (q *line) deliver() {
	for {
		q.mu.Lock()
		if len(q.waiting) == 0 {
			q.busy = false
			q.mu.Unlock()
			return
		}
		f := q.waiting[0]
		q.waiting = q.waiting[1:]
		q.mu.Unlock()
		f()
	}
}
