package node

import "context"

// A Fabric connects the processes of a job: it begins and ends the job, has the memory that
// processes of a machine share, carries packets and transfers to all others, and reports deaths.
// All calls are made with the engine's mu held, or before and after it is in use.
type Fabric interface {
	// Start begins to take part in the job. mortal says that its processes may die. Until
	// Finalize or Desert the fabric may call wake when Poll has something to tell.
	Start(mortal bool, wake func()) (Start, error)

	// Send sends a packet. Its bytes may be changed when Send returns.
	Send(to int, h Header, rest []byte) error
	// Transfer begins to send or receive the bytes of a transfer, pinned: Poll will take its
	// end, unless the peer is dead already. A receiver may have room for more than is sent.
	Transfer(send bool, peer int, tag uint32, bytes []byte, id uint64) (dead bool, err error)
	// Poll moves messages, at most times times, until something happens, and tells s: first an
	// error, then packets that have come and transfers that have ended. It also says
	// whether processes may have died since Failed was called.
	Poll(s *Sink, times int) (happened, died bool)
	// Pressing says that Poll should be called soon, because the fabric has work other than
	// packets.
	Pressing() bool
	// Failed returns the processes that have died so far.
	Failed() ([]int, error)
	// Requests returns the number of this process's sends and transfers that are under way.
	Requests() int

	// Leave says that this process needs the other processes no more. EverybodyLeft says whether
	// all have called Leave.
	Leave(mortal bool) error
	EverybodyLeft() (bool, error)
	// Finalize ends this process's part in the job, in which processes may have died.
	Finalize(dead bool) error
	// Desert ends this process's part without the others, which have declared it dead.
	Desert()
	// Kill ends this process, and does not return.
	Kill()
}

// A Network is what a Fabric for several machines is made of: see Watched. Its Start does not say
// which machines there are.
type Network interface {
	Fabric
	// Machines returns for each process the number of its machine, the same at all processes.
	Machines() ([]int, error)
	// Neighbours returns the processes of this machine, including this one, in the same order at
	// all of them. If most is not 0, it divides them into groups of at most that many, and returns
	// this one's. The following two methods are then of the group.
	Neighbours(most int) ([]int, error)
	// FromFirst gives all neighbours the contents of b at the first of them.
	FromFirst(b []byte) error
	// AllNear says whether ok is true at all neighbours.
	AllNear(ok bool) (bool, error)
	// AllHere waits until all processes have called it, where they may die afterwards.
	AllHere() error
	// Lost tells the network of a death that it may not know of.
	Lost(process int)
}

// Start describes a job that has begun.
type Start struct {
	Name       string // of the transport
	Rank, Size int
	Crowded    bool   // there are more ranks than cores
	Machines   []int  // for each process the number of its machine, the same at all processes
	Near       []int  // the processes that share Memory, in the same order at all of them
	Memory     []byte // nil: the fabric carries everything; else of MemorySize, all zero at first
	// Packet is the length of the longest packet to another machine, if packets there may be
	// longer than those to processes of this machine.
	Packet int
	// Later is the number of processes, the last ones, that may be started later. If it is not 0
	// the fabric is a Reserve.
	Later int
	// Wakes says that wake of Fabric's Start is called for whatever Poll has to tell, or that
	// another process of the machine wakes this one. Otherwise Poll is called often.
	Wakes bool
	// Marks are words in memory that change, waking who waits for them, when a process of this
	// machine ends: see package bell.
	Marks []*uint32
	// Reason is what Reason of transport.Driver returns. Nil: the launcher never tells.
	Reason func(ctx context.Context, process int) string
}

// A Reserve is a Fabric that can start processes later. What is sent to a process before it begins
// waits for it; nothing else waits.
type Reserve interface {
	// Respawn makes the launcher start a process and all before it, unless they were started.
	Respawn(process int)
	// Begun returns the number of processes that have begun or that Respawn was called for.
	Begun() int
}

// A Sink receives the events of a Fabric: it is the engine.
type Sink engine

// Fail ends everything: nothing works after an error of the fabric.
func (s *Sink) Fail(err error) { (*engine)(s).fail(err) }

// Came takes a packet. Its bytes are the caller's again when Came returns.
func (s *Sink) Came(source int, packet []byte) {
	if err := (*engine)(s).take(source, packet); err != nil {
		(*engine)(s).garbage(source, err)
	}
}

// Ended notes that a transfer has been sent, or received with length bytes, or that its peer is
// dead.
func (s *Sink) Ended(id uint64, length int, dead bool) { (*engine)(s).ended(id, length, dead) }

// Tell makes the engine call f when mu is free, after all earlier callbacks.
func (s *Sink) Tell(f func()) { s.due = append(s.due, callback{call: f}) }

// A Header is the header of a packet, for a fabric that sends it.
type Header = header

// HeaderLength is the greatest number of bytes of an encoded Header.
const HeaderLength = headerLength

// Encode stores the header in b, and returns its number of bytes.
func (h *header) Encode(b *[HeaderLength]byte) int {
	h.encode(b[:])
	return h.encodedLength()
}
