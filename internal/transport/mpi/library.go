package mpi

// A library is MPI as the package uses it. All calls are made with the engine's mu
// held, or before and after it is in use.
type library interface {
	// version says which MPI this is.
	version() string
	// hasULFM says whether it can survive processes that die, if it is started so.
	hasULFM() bool

	// start begins to take part in the job.
	start() (start, error)
	// neighbours returns the processes that can share memory, this one too, in an order
	// that they agree on; at most so many in a group, if most is not 0.
	neighbours(most int) ([]int, error)
	// fromFirst gives the neighbours what the first of them has in b.
	fromFirst(b []byte) error
	// allNear says whether ok is true at all neighbours. It is the last thing that they
	// are asked.
	allNear(ok bool) (bool, error)
	// allHere waits until all processes have called it, where they may die afterwards.
	allHere() error

	// send sends a packet, whose bytes are free when it returns.
	send(to int, h header, rest []byte) error
	// begin begins to send or receive a part of a transfer, pinned: poll will take its end,
	// unless the peer is lost already.
	begin(send bool, peer int, tag uint32, part []byte, id uint64) (lost bool, err error)
	// poll moves messages, up to so many times until something happens, and gives e what
	// did: an error first, then packets that came and parts of transfers that ended. It says
	// whether processes may have died since failed was called.
	poll(e *engine, times int) (happened, died bool)
	// failed returns the processes that MPI has lost so far.
	failed() ([]int, error)
	// requests is how many of this process MPI has, but for the receives of packets.
	requests() int

	// leave says that this process needs the others no more; everybodyLeft, whether all
	// have said so.
	leave(mortal bool) error
	everybodyLeft() (bool, error)
	// finalize ends MPI, which may have lost processes.
	finalize(lost bool) error
	// kill ends this process, and does not return.
	kill()
}

// start is how MPI has begun.
type start struct {
	rank, size int
	serialized bool // it may be called from several threads, one at a time
	mortal     bool // a process that dies does not take the others along
	crowded    bool // there are more ranks than cores
}
