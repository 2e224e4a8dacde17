package transport

// A Library is one rank's part in what an MPI library with ULFM provides for one communicator:
// communicators of its own, one for agreements, two whose revocation is a notice, and a further
// one of this kind for each round of errors. Its methods may be called concurrently and do not
// block; they are carried out in order.
type Library interface {
	// Listen starts the Library. The events come in order, one at a time, on any goroutine.
	Listen(LibraryClient)
	// Revoke revokes the communicator that stands for a notice (MPIX_Comm_revoke).
	Revoke(Topic)
	// Agree begins an agreement on the bitwise AND of words, the same number at all ranks
	// (MPIX_Comm_iagree). At most one is under way.
	Agree([]uint32)
	// Renew replaces the communicator of Signals (MPIX_Comm_shrink). It must not be called again
	// before Renewed.
	Renew()
	// Forgo cancels a Renew after a death, because a dead process may not have taken part. It may
	// come too late.
	Forgo()
	// Close releases everything.
	Close()
}

// A Topic is the meaning of a notice.
type Topic uint8

const (
	// Signals open a round of errors.
	Signals Topic = iota
	// Corruptions say that the verdict of a round will be final.
	Corruptions
	// Revocations say that the program has revoked the communicator.
	Revocations
	// Topics is their number.
	Topics
)

// A LibraryClient receives the events of a Library.
type LibraryClient interface {
	// Made says that the communicators are made. It comes first.
	Made()
	// Noticed says that the communicator of a topic is revoked.
	Noticed(Topic)
	// Agreed has the result of Agree.
	Agreed([]uint32)
	// Renewed says that Renew is done.
	Renewed()
}
