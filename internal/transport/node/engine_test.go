package node

import (
	"sync/atomic"
	"testing"

	"github.com/mpicx/go-mpicx/internal/bell"
	"github.com/mpicx/go-mpicx/internal/ring"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// engine returns the engine of a process of which nobody makes progress but the test. It shares
// memory, by source and destination, with the first two processes.
func (j *memoryJob) engine(me, room int, mortal bool, memory *[2][2][]byte) *engine {
	n := len(j.machines)
	e := newEngine(j.processes[me], mortal)
	e.rank, e.size, e.machines = me, n, j.machines
	e.dead, e.leads, e.out, e.from = make([]bool, n), make([]leads, n), make([]*outbox, n), make([]*inbox, n)
	for p := range memory {
		e.from[p] = newInbox(memory[p][me], room, p)
		e.out[p] = newOutbox(memory[me][p], room, bell.New(make([]byte, bell.Size)))
	}
	e.in = e.from[:len(memory)]
	e.chunk = ring.Longest(room) - headerLength
	e.limit = min(nearLimit, e.chunk)
	return e
}

// newMemory returns what two processes share, by source and destination.
func newMemory(room int) (memory [2][2][]byte) {
	for from := range memory {
		for to := range memory {
			memory[from][to] = make([]byte, oneWay(room))
		}
	}
	return memory
}

// alone returns process 0 of three, of which 1 shares memory with it, and that memory: of
// what comes from 0, and from 1.
func alone(t *testing.T, mortal bool) (e *engine, c *comm, from [2][]byte) {
	j := &memoryJob{machines: make([]int, 3), knows: true}
	j.populate(1)
	memory := newMemory(leastRoom)
	e = j.engine(0, leastRoom, mortal, &memory)
	t.Cleanup(func() {
		for _, t := range e.transfers { // which the fabric would have forever
			t.pin.Unpin()
		}
	})
	return e, e.newComm(world, e.livenessOf(world), 0, nil, 0), [2][]byte{memory[0][0], memory[1][0]}
}

// pair returns two processes that share memory, and the memory of the ring from 0 to 1.
func pair(mortal bool) (comms [2]*comm, shared []byte) {
	j := &memoryJob{machines: make([]int, 2), knows: true}
	j.populate(1)
	memory := newMemory(mostRoom)
	for me := range comms {
		e := j.engine(me, mostRoom, mortal, &memory)
		comms[me] = e.newComm(world, e.livenessOf(world), me, nil, 0)
	}
	return comms, memory[0][1][:ring.Size(mostRoom)]
}

// settle makes progress at all of cs until nothing happens.
func settle(cs ...*comm) {
	for idle := 0; idle < 10; idle++ {
		for _, c := range cs {
			if c.e.progress(1) {
				idle = 0
			}
		}
	}
}

func (r *request) ended() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// A request of these tests.
type request struct {
	transport.Request
	awaited atomic.Bool
	done    chan struct{}
}

func (r *request) Completed(*transport.Request) { close(r.done) }

func (r *request) Awaited() bool { return r.awaited.Load() }

// start begins a request.
func (r *request) start(begin func(*transport.Request)) *request {
	r.done, r.Done = make(chan struct{}), r
	begin(&r.Request)
	return r
}

func (r *request) wait() error {
	<-r.done
	return r.Err
}

// begin begins a request.
func begin(how func(*transport.Request), peer, tag int, buf []byte) *request {
	r := &request{Request: transport.Request{Peer: peer, Tag: tag, Buf: buf}}
	return r.start(how)
}

func recv(c *comm, peer, tag int) *request { return begin(c.Irecv, peer, tag, make([]byte, 1<<20)) }

func send(c *comm, peer, tag, length int) *request {
	return begin(c.Isend, peer, tag, make([]byte, length))
}

// came has a packet come from a process.
func (e *engine) came(from int, h header, rest []byte) {
	e.mu.Lock()
	(*Sink)(e).Came(from, packet(h, rest))
	e.unlock()
}

// buries has the engine learn of the death of a process.
func (e *engine) buries(process int) {
	e.mu.Lock()
	e.died(process)
	e.unlock()
}
