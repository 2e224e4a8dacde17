//go:build mpi && cgo

package mpi

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"syscall"

	"github.com/mpicx/go-mpicx/internal/ring"
)

// node is what the processes of one machine share: a ring of packets from each to
// each, in memory. A packet that goes through it is there after some 100 ns, without
// a call of MPI.
type node struct {
	in      []inbox
	out     []*outbox // by process; nil: it is elsewhere, or dead, and MPI has to do
	lagging int       // packets in backlogs
	limit   int       // nearLimit, or less if the rings are small
}

type inbox struct {
	ring.Reader
	process int
}

type outbox struct {
	ring.Writer
	backlog [][]byte // packets for which there was no room
}

// How much memory a machine's processes share, at most; and how many of them, since
// each looks for packets of each.
const (
	mostShared     = 16 << 20
	mostNeighbours = 128
	mostRoom       = 64 << 10 // of a ring
	leastRoom      = 4 << 10
)

// envNode has as many processes share memory at most: 1 is none.
const envNode = "MPICX_NODE"

// shareMemory makes the rings. If that is not possible MPI carries everything.
func (e *engine) shareMemory() error {
	e.out = make([]*outbox, e.size)
	most, _ := strconv.Atoi(os.Getenv(envNode))
	near, err := e.neighbours(most)
	if err != nil {
		return err
	}
	n, me := len(near), slices.Index(near, e.rank)
	room := mostRoom
	for room > leastRoom && n*n*room > mostShared {
		room /= 2
	}
	size := ring.Size(room)
	var memory []byte
	if n > 1 && n <= mostNeighbours {
		memory, err = shared(me == 0, n*n*size)
	} else {
		_, err = allNear(false)
	}
	if err != nil || memory == nil {
		return err
	}
	e.limit = min(nearLimit, ring.Longest(room)-headLength)
	for i, p := range near {
		from, to := memory[(i*n+me)*size:][:size], memory[(me*n+i)*size:][:size]
		e.in = append(e.in, inbox{ring.NewReader(from), p})
		e.out[p] = &outbox{Writer: ring.NewWriter(to)}
	}
	return nil
}

// shared returns memory that the neighbours share, which the first of them makes; nil
// if they can't.
func shared(first bool, size int) ([]byte, error) {
	var name [256]byte
	var file *os.File
	var err error
	if first {
		if file, err = memoryFile(size); err == nil {
			defer os.Remove(file.Name())
			copy(name[:len(name)-1], file.Name())
		}
	}
	if err := fromFirst(name[:]); err != nil {
		return nil, err
	}
	if !first {
		file, err = os.OpenFile(string(bytes.TrimRight(name[:], "\x00")), os.O_RDWR, 0)
	}
	var memory []byte
	if err == nil {
		memory, err = syscall.Mmap(int(file.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
		_ = file.Close()
	}
	ok, fatal := allNear(err == nil) // all have opened it
	if !ok || fatal != nil {
		return nil, fatal
	}
	return memory, nil
}

// memoryFile makes a file of zeros that is memory, where the system has such files.
func memoryFile(size int) (*os.File, error) {
	f, err := os.CreateTemp("/dev/shm", "mpicx-*")
	if err != nil {
		f, err = os.CreateTemp("", "mpicx-*")
	}
	if err != nil {
		return nil, err
	}
	if _, err = f.Write(make([]byte, size)); err != nil { // or the first to touch it would find that it is full
		_ = f.Close()
		_ = os.Remove(f.Name())
		return nil, err
	}
	return f, nil
}

// eager is how long a message to a process may be that goes in a packet.
func (e *engine) eager(process int) int {
	if e.out[process] != nil {
		return e.limit
	}
	return farLimit
}

// sendNear sends a packet through the ring, or notes it.
func (e *engine) sendNear(o *outbox, h *head, rest []byte) {
	n := headLength + len(rest)
	var packet []byte
	if len(o.backlog) == 0 {
		packet = o.Begin(n)
	}
	lags := packet == nil
	if lags {
		packet = make([]byte, n)
	}
	h.encode((*[headLength]byte)(packet))
	copy(packet[headLength:], rest)
	if lags {
		o.backlog = append(o.backlog, packet)
		e.lagging++
	} else {
		o.End(n)
	}
}

// catchUp sends what there was no room for.
func (e *engine) catchUp() {
	for _, o := range e.out {
		for o != nil && len(o.backlog) > 0 {
			packet := o.backlog[0]
			room := o.Begin(len(packet))
			if room == nil {
				break
			}
			copy(room, packet)
			o.End(len(packet))
			o.backlog = o.backlog[1:]
			e.lagging--
		}
	}
}

// look takes packets of neighbours, one of each at most, and says whether there was
// any.
func (e *engine) look() (came bool) {
	for i := range e.in {
		in := &e.in[i]
		if packet, ok := in.Read(); ok {
			e.came(in.process, packet)
			in.Done(len(packet))
			came = true
		}
	}
	return came
}

// lastOf takes all that a neighbour has sent, which is dead, and gives it nothing more.
func (e *engine) lastOf(process int) {
	for i := range e.in {
		if in := &e.in[i]; in.process == process {
			for packet, ok := in.Read(); ok; packet, ok = in.Read() {
				e.came(process, packet)
				in.Done(len(packet))
			}
		}
	}
	if o := e.out[process]; o != nil {
		e.lagging -= len(o.backlog)
		e.out[process] = nil
	}
}
