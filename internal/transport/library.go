package transport

// A Library is one rank's part in what an MPI library with ULFM has for one communicator: three
// communicators of its own, one to agree on, and two whose revocation is a notice, and one
// more for each round of errors. Its methods may be called concurrently and do not
// block; they are carried out in order.
type Library interface {
	// Listen begins. The events come in order, one at a time, on any goroutine.
	Listen(LibraryClient)
	// Revoke revokes the communicator that stands for a notice (MPIX_Comm_revoke).
	Revoke(Topic)
	// Agree begins an agreement on the bitwise AND of some words, as many at all ranks
	// (MPIX_Comm_iagree). One is under way at a time.
	Agree([]uint32)
	// Renew replaces the communicator of Signals (MPIX_Comm_shrink). No rank does it again before
	// it was told of the end.
	Renew()
	// Forgo takes Renew back, where a process has died, which may not take part. Perhaps it comes
	// too late.
	Forgo()
	// Close gives all back.
	Close()
}

// A Topic is what a notice is about.
type Topic uint8

const (
	// Signals open a round of errors.
	Signals Topic = iota
	// Corruptions say that the verdict of a round will be final.
	Corruptions
	// Revocations say that the program has revoked the communicator.
	Revocations
	// Topics is how many there are.
	Topics
)

// A LibraryClient hears of a Library.
type LibraryClient interface {
	// Made says that the communicators are there. It comes first.
	Made()
	// Noticed says that the communicator of a topic is revoked.
	Noticed(Topic)
	// Agreed is the end of Agree.
	Agreed([]uint32)
	// Renewed is the end of Renew.
	Renewed()
}
