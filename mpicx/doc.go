// Package mpicx carries errors across ranks.
//
// A parallel program runs the same code on n ranks. When one fails, the others
// wait for messages that never come. With mpicx that failure becomes an ordinary
// typed Go error at every rank, out of whatever Wait each is in, and then the
// program goes on. It follows Engwer, Altenbernd, Dreier, Göddeke, "A high-level
// C++ approach to manage local errors, asynchrony and faults in an MPI
// application", with Go's futures, errors and panics in place of C++'s.
//
// One rule carries the whole package: an operation that involves other ranks
// returns a future at once, and the future's Wait says how it ended. Starting an
// operation never fails and never blocks.
//
// Wait returns nil, a context's cause, or one of these errors:
//
//   - *[PropagatedError]: ranks signalled errors, by [Comm.Try], [Comm.Signal] or
//     [Comm.SignalError]. Every rank has the same one, once, and the communicator
//     works: decide, all alike, how to go on.
//   - *[CommCorruptedError]: a rank unwound out of [Comm.Guard], or died. The
//     communicator is broken for good.
//   - *[MPIError]: this operation, at this rank: a bad argument, a message that
//     does not fit.
//   - With -tags ulfm and [ErrorsReturn]: *[ProcFailedError], [ErrRevoked] and
//     [ErrProcFailedPending], of which the last is not final.
//
// Collective operations have a buffer for what a rank gives, send, and one for what it gets,
// recv. One may serve for both (MPI_IN_PLACE). Where the two have the same length, as in
// [Allreduce] and [Alltoall], pass the same slice. Where one is a part of the other, it stands
// in its place there: in [Allgather], send is recv[c.Rank()*len(send):][:len(send)]. Buffers
// that overlap in any other way are an *[MPIError].
//
// Processes that die are seen with -tags ulfm. Then [Comm.Shrink] makes a
// communicator of those that live, and [Comm.Agree] lets them decide alike.
//
// The package must never know how errors spread (backends do) or how messages do
// (transports).
package mpicx
