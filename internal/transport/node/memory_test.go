package node

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/launcher"
)

// memoryJob is a job whose processes are goroutines, for tests. It keeps the promises of a Fabric,
// and does things in any order that these allow.
type memoryJob struct {
	share    bool  // processes of a machine share memory, and see each other's ends
	machines []int // by process
	knows    bool  // it reports all deaths; else only those that it is told by Lost
	packet   int   // see Start

	mu        sync.Mutex
	processes []*memoryFabric
	meetings  map[[2]int]*meeting         // by the first process that takes part, and the number of these
	cut       func(source, dest int) bool // while it returns true, packets wait
}

// meeting is a collective operation.
type meeting struct {
	come    int
	brought [][]byte
	over    chan struct{} // all have come to it
}

// memoryFabric is the fabric of one of them. The job's mu guards it.
type memoryFabric struct {
	job       *memoryJob
	rank      int
	rand      *rand.Rand
	packets   [][][]byte // that have come, by source
	last      []byte     // that the engine has looked at
	transfers []*half
	ended     []ended
	dead      bool
	deserted  bool // End has returned without the others
	seen      int  // deaths
	left      bool
	lost      []int // the deaths that it has been told of by Lost
}

// half is one end of a transfer under way.
type half struct {
	send  bool
	peer  int
	tag   uint32
	bytes []byte
	id    uint64
}

type ended struct {
	id     uint64
	length int
	lost   bool
}

// startMemory starts a job of n processes on one machine, and ends it with t.
func startMemory(t *testing.T, n int, share, mortal bool) []*Job {
	t.Helper()
	return start(t, &memoryJob{share: share, machines: make([]int, n), knows: true}, Options{Mortal: mortal})
}

// start starts a job, and ends it with t.
func start(t *testing.T, j *memoryJob, o Options) []*Job {
	t.Helper()
	if launcher.Launched() {
		t.Skip("this job has a fabric of its own")
	}
	j.meetings = make(map[[2]int]*meeting)
	n := len(j.machines)
	j.populate(rand.Uint64())
	jobs, errs := make([]*Job, n), make([]error, n)
	each(n, func(r int) { jobs[r], errs[r] = Begin(Watched(t.Context(), j.processes[r]), o) })
	for _, err := range errs {
		require.NoError(t, err)
	}
	for _, job := range jobs {
		job.world.Watch(1) // as if a goroutine waited
	}
	t.Cleanup(func() {
		each(n, func(r int) {
			e, m := jobs[r].engine, j.processes[r]
			if m.deserted {
				return
			}
			if m.gone() {
				close(e.stop)
				e.idle.Wait()
				closeSockets(e)
				return
			}
			if err := jobs[r].End(); !e.over.Load() {
				errs[r] = err
			}
		})
		if !t.Failed() {
			for r, err := range errs {
				require.NoError(t, err, "process %d", r)
				require.Zero(t, len(j.processes[r].transfers), "process %d", r)
			}
		}
	})
	return jobs
}

// populate makes the processes.
func (j *memoryJob) populate(seed uint64) {
	n := len(j.machines)
	for r := range n {
		m := &memoryFabric{job: j, rank: r, rand: rand.New(rand.NewPCG(seed, uint64(r))), packets: make([][][]byte, n)}
		j.processes = append(j.processes, m)
	}
}

// closeSockets does what the system does at the end of a process.
func closeSockets(e *engine) {
	if w := e.fabric.(*watched); w.peers != nil {
		_ = w.peers.Close()
	}
}

// each runs fn for each process, in goroutines.
func each(n int, fn func(rank int)) {
	var all sync.WaitGroup
	for r := range n {
		all.Go(func() { fn(r) })
	}
	all.Wait()
}

func (m *memoryFabric) Start(bool, func()) (Start, error) {
	return Start{Name: "memory", Rank: m.rank, Size: len(m.job.processes), Crowded: true, Packet: m.job.packet, Wakes: true}, nil
}

// meet gathers what processes bring, this one among them, by place in the list.
func (m *memoryFabric) meet(who []int, mine []byte) [][]byte {
	j := m.job
	j.mu.Lock()
	name := [2]int{who[0], len(who)}
	of := j.meetings[name]
	if of == nil {
		of = &meeting{brought: make([][]byte, len(who)), over: make(chan struct{})}
		j.meetings[name] = of
	}
	of.brought[slices.Index(who, m.rank)] = slices.Clone(mine)
	if of.come++; of.come == len(who) {
		delete(j.meetings, name)
		close(of.over)
	}
	j.mu.Unlock()
	<-of.over
	return of.brought
}

func (m *memoryFabric) lock() (unlock func()) {
	m.job.mu.Lock()
	return m.job.mu.Unlock
}

func (m *memoryFabric) Machines() ([]int, error) { return m.job.machines, nil }

func (m *memoryFabric) Neighbours(most int) ([]int, error) { return m.near(), nil }

func (m *memoryFabric) near() (near []int) {
	for r, machine := range m.job.machines {
		if r == m.rank || m.job.share && machine == m.job.machines[m.rank] {
			near = append(near, r)
		}
	}
	return near
}

func (m *memoryFabric) FromFirst(b []byte) error {
	copy(b, m.meet(m.near(), b)[0])
	return nil
}

func (m *memoryFabric) AllNear(ok bool) (bool, error) {
	return !slices.ContainsFunc(m.meet(m.near(), fmt.Append(nil, ok)), func(b []byte) bool { return string(b) != "true" }), nil
}

func (m *memoryFabric) AllHere() error {
	all := make([]int, len(m.job.machines))
	for r := range all {
		all[r] = r
	}
	m.meet(all, nil)
	return nil
}

func (m *memoryFabric) Send(to int, h Header, rest []byte) error {
	packet := make([]byte, headerLength, headerLength+len(rest))
	packet = append(packet[:h.Encode((*[headerLength]byte)(packet))], rest...)
	most := farLimit
	if m.job.machines[to] != m.job.machines[m.rank] {
		most = max(most, m.job.packet-headerLength)
	}
	if len(rest) > most {
		panic(fmt.Sprintf("a packet with %d bytes, expected %d or fewer", len(rest), most))
	}
	defer m.lock()()
	if p := m.job.processes[to]; !m.dead && !p.dead {
		p.packets[m.rank] = append(p.packets[m.rank], packet)
	}
	return nil
}

func (m *memoryFabric) Transfer(send bool, peer int, tag uint32, part []byte, id uint64) (dead bool, err error) {
	defer m.lock()()
	p := m.job.processes[peer]
	if p.dead {
		return true, nil
	}
	b := &half{send, peer, tag, part, id}
	i := slices.IndexFunc(p.transfers, func(o *half) bool { return o.send != send && o.peer == m.rank && o.tag == tag })
	if i < 0 {
		m.transfers = append(m.transfers, b)
		return false, nil
	}
	o := p.transfers[i]
	p.transfers = slices.Delete(p.transfers, i, i+1)
	from, to := b, o
	if !send {
		from, to = o, b
	}
	if len(from.bytes) > len(to.bytes) {
		panic(fmt.Sprintf("%d bytes of a transfer, expected %d or fewer", len(from.bytes), len(to.bytes)))
	}
	n := copy(to.bytes, from.bytes)
	m.ended = append(m.ended, ended{b.id, n, false})
	p.ended = append(p.ended, ended{o.id, n, false})
	return false, nil
}

func (m *memoryFabric) Poll(s *Sink, times int) (happened, died bool) {
	for i := range m.last {
		m.last[i] = 0xAA // it was the engine's until now
	}
	m.last = nil
	m.job.mu.Lock()
	source := m.rand.IntN(len(m.packets))
	for range times {
		if source = (source + 1) % len(m.packets); len(m.packets[source]) > 0 && !m.job.isCut(source, m.rank) {
			m.last = m.packets[source][0]
			m.packets[source] = m.packets[source][1:]
			break
		}
	}
	some := m.rand.IntN(len(m.ended) + 1)
	m.rand.Shuffle(len(m.ended), func(i, k int) { m.ended[i], m.ended[k] = m.ended[k], m.ended[i] })
	over := slices.Clone(m.ended[:some])
	m.ended = slices.Delete(m.ended, 0, some)
	died = !m.dead && len(m.deaths()) > m.seen
	m.job.mu.Unlock()
	if m.last != nil {
		s.Came(source, m.last)
	}
	for _, b := range over {
		s.Ended(b.id, b.length, b.lost)
	}
	return m.last != nil || len(over) > 0, died
}

func (j *memoryJob) isCut(source, dest int) bool { return j.cut != nil && j.cut(source, dest) }

// deaths returns the deaths that the fabric knows of.
func (m *memoryFabric) deaths() (dead []int) {
	if !m.job.knows {
		return m.lost
	}
	for r, p := range m.job.processes {
		if p.dead {
			dead = append(dead, r)
		}
	}
	return dead
}

func (m *memoryFabric) Failed() ([]int, error) {
	defer m.lock()()
	dead := slices.Clone(m.deaths())
	m.seen = len(dead)
	return dead, nil
}

func (m *memoryFabric) Lost(process int) {
	defer m.lock()()
	m.lost = append(m.lost, process)
}

func (m *memoryFabric) Desert() { m.deserted = true }

func (m *memoryFabric) Requests() int {
	defer m.lock()()
	return len(m.transfers) + len(m.ended)
}

func (*memoryFabric) Pressing() bool { return false }

func (m *memoryFabric) Leave(bool) error {
	defer m.lock()()
	m.left = true
	return nil
}

func (m *memoryFabric) EverybodyLeft() (bool, error) {
	defer m.lock()()
	return !slices.ContainsFunc(m.job.processes, func(p *memoryFabric) bool {
		return !p.left && !slices.Contains(m.deaths(), p.rank)
	}), nil
}

func (m *memoryFabric) Finalize(bool) error { return nil }

func (m *memoryFabric) gone() bool {
	defer m.lock()()
	return m.dead
}

// kill ends what the process has under way, and the goroutine. Packets that it has
// sent come all the same.
func (m *memoryFabric) Kill() {
	m.job.mu.Lock()
	m.dead = true
	m.transfers, m.ended = nil, nil
	for _, p := range m.job.processes {
		p.transfers = slices.DeleteFunc(p.transfers, func(b *half) bool {
			if b.peer == m.rank {
				p.ended = append(p.ended, ended{b.id, -1, true})
			}
			return b.peer == m.rank
		})
	}
	clear(m.packets)
	m.job.mu.Unlock()
	runtime.Goexit()
}
