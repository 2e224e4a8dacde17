package node

import (
	"math/rand/v2"

	"github.com/mpicx/go-mpicx/internal/ring"
)

// pair returns two processes that share memory, and the memory of the pipe from 0 to 1. Nobody
// makes progress but the test.
func pair(mortal bool) (comms [2]*comm, pipe []byte) {
	j := &memoryJob{machines: make([]int, 2), knows: true}
	const room = mostRoom
	var memory [2][2][]byte // by source, destination
	for from := range 2 {
		for to := range 2 {
			memory[from][to] = make([]byte, oneWay(room))
		}
		j.processes = append(j.processes, &memoryFabric{job: j, rank: from, rand: rand.New(rand.NewPCG(1, uint64(from))), packets: make([][][]byte, 2)})
	}
	for me := range 2 {
		e := newEngine(j.processes[me], mortal)
		e.rank, e.size, e.dead, e.leads = me, 2, make([]bool, 2), make([]leads, 2)
		e.limit, e.chunk = nearLimit, room/4
		for p := range 2 {
			from, to := memory[p][me], memory[me][p]
			e.in = append(e.in, newInbox(from, room, p))
			e.out = append(e.out, newOutbox(to, room))
		}
		e.from = e.in
		comms[me] = e.newComm(world, e.livenessOf(world), me, nil, 0)
	}
	return comms, memory[0][1][ring.Size(room):][:ring.Size(2*room)]
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
