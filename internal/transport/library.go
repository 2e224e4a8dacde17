package transport

// A Library is one rank's part in what an MPI library with ULFM provides for one communicator: a
// communicator of its own, to revoke and to agree on. Its methods may be called concurrently and
// do not block; they are carried out in order, once that communicator is made.
type Library interface {
	// Listen starts the Library. The events come in order, one at a time, on any goroutine.
	Listen(LibraryClient)
	// Revoke revokes the communicator (MPIX_Comm_revoke).
	Revoke()
	// Agree begins an agreement on the bitwise AND of words, the same number at all ranks
	// (MPIX_Comm_iagree). At most one is under way.
	Agree([]uint32)
	// Close releases everything.
	Close()
}

// A LibraryClient receives the events of a Library.
type LibraryClient interface {
	// Revoked says that the communicator is revoked.
	Revoked()
	// Agreed has the result of Agree.
	Agreed([]uint32)
}
