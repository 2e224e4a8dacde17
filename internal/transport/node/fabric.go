package node

// A Fabric is what the processes of a job have beside the memory of a machine: the job's
// beginning and end, what carries packets and transfers to processes of other machines,
// and who has died. All calls are made with the engine's mu held, or before and after it
// is in use.
type Fabric interface {
	// Start begins to take part in the job; mortal: whose processes may die.
	Start(mortal bool) (Start, error)
	// Machines returns for each process the number of its machine, the same at all processes.
	Machines() ([]int, error)
	// Neighbours returns the processes that can share memory, this one too, in an order
	// that they agree on; at most so many in a group, if most is not 0.
	Neighbours(most int) ([]int, error)
	// Memory returns so many bytes that the neighbours share, all zero; nil if there are none,
	// and the neighbours have to make some.
	Memory(size int) ([]byte, error)
	// FromFirst gives the neighbours what the first of them has in b.
	FromFirst(b []byte) error
	// AllNear says whether ok is true at all neighbours. It is the last thing that they
	// are asked.
	AllNear(ok bool) (bool, error)
	// AllHere waits until all processes have called it, where they may die afterwards.
	AllHere() error

	// Send sends a packet, whose bytes are free when it returns.
	Send(to int, h Header, rest []byte) error
	// Transfer begins to send or receive a part of a transfer, pinned: Poll will take its
	// end, unless the peer is lost already.
	Transfer(send bool, peer int, tag uint32, part []byte, id uint64) (lost bool, err error)
	// Poll moves messages, up to so many times until something happens, and gives s what
	// did: an error first, then packets that came and parts of transfers that ended. It says
	// whether processes may have died since Failed was called.
	Poll(s Sink, times int) (happened, died bool)
	// Pressing says that Poll is to be called soon, because something is asked of the fabric
	// that is no packet.
	Pressing() bool
	// Failed returns the processes that have died so far.
	Failed() ([]int, error)
	// Lost tells it of a death that it may not know of.
	Lost(process int)
	// Sees says whether this process would have seen the end of another at once, and has not.
	Sees(process int) bool
	// Requests is how many of this process's sends and transfers are under way.
	Requests() int

	// Leave says that this process needs the others no more; EverybodyLeft, whether all
	// have said so.
	Leave(mortal bool) error
	EverybodyLeft() (bool, error)
	// Finalize ends this process's part in the job, which may have lost processes.
	Finalize(lost bool) error
	// Desert ends this process's part without the others, which hold it for dead.
	Desert()
	// Kill ends this process, and does not return.
	Kill()
}

// Start is how a job has begun.
type Start struct {
	Name       string // of the transport
	Rank, Size int
	Crowded    bool // there are more ranks than cores
}

// A Sink takes what a Fabric has brought.
type Sink interface {
	// Fail ends everything: nothing works after an error of the fabric.
	Fail(err error)
	// Came takes a packet, whose bytes are the caller's when it returns.
	Came(source int, packet []byte)
	// Ended takes note that a part of a transfer has left, or come with so many bytes;
	// or that its peer is lost.
	Ended(id uint64, length int, lost bool)
	// Tell has f called once no lock is held, after all that has come before.
	Tell(f func())
}

// sink is the engine as a fabric sees it.
type sink engine

func (s *sink) Fail(err error)                         { (*engine)(s).fail(err) }
func (s *sink) Came(source int, packet []byte)         { (*engine)(s).came(source, packet) }
func (s *sink) Ended(id uint64, length int, lost bool) { (*engine)(s).ended(id, length, lost) }
func (s *sink) Tell(f func())                          { s.news = append(s.news, news{call: f}) }

// A Header is what a packet begins with, for a fabric that sends it.
type Header struct{ header }

// HeaderLength is how many bytes it takes at most.
const HeaderLength = headerLength

// Encode stores it, and returns how many bytes it takes.
func (h *Header) Encode(b *[HeaderLength]byte) int {
	h.encode(b[:])
	return h.encodedLength()
}
