// Package mpicx carries errors across ranks.
//
// A parallel program runs the same code on n ranks. When one rank fails, the others wait for
// messages that never come. With mpicx every rank gets that failure as a typed Go error, from the
// Wait it is in, and the program can recover. The package follows Engwer, Altenbernd, Dreier,
// Göddeke, "A high-level C++ approach to manage local errors, asynchrony and faults in an MPI
// application", with Go's futures, errors and panics in place of C++'s.
//
// An operation that involves other ranks returns a future at once. The future's Wait says how
// the operation ended. Starting an operation never fails and never blocks.
//
// # Errors
//
// Wait returns nil, the cause of its context's end, or one of these errors:
//
//   - *[PropagatedError]: ranks signalled errors, by [Comm.Try], [Comm.TryAll], [Comm.Signal] or
//     [Comm.SignalError]. Every rank gets the same error once. The communicator keeps working,
//     and all ranks can make the same decision: retry, go back, or give up.
//   - *[CommCorruptedError]: a rank left [Comm.Guard] by an error or a panic, or its process
//     died. The communicator is broken for good.
//   - *[MPIError]: an error of this operation at this rank, such as a bad argument or a message
//     that does not fit.
//   - With -tags ulfm and [ErrorsReturn]: *[ProcFailedError], [ErrRevoked] and
//     [ErrProcFailedPending]. After the last the operation is still pending.
//
// # Try, TryAll or Guard
//
//   - [Comm.Try] where a rank may fail and all then handle the error together. It does not wait
//     for the other ranks.
//   - [Comm.TryAll] where all have to succeed together: in every loop that tries again, and
//     around a checkpoint. It waits for all ranks.
//   - [Comm.Guard] around work from which a failed rank does not come back. Package recovery
//     puts Guard, TryAll and the repair of the communicator together.
//
// # Buffers
//
// Collective operations have a buffer for what a rank gives, send, and one for what it gets,
// recv. One slice may serve for both (MPI_IN_PLACE). Where the two have the same length, as in
// [Allreduce] and [Alltoall], pass the same slice. Where one is a part of the other, pass it in
// its place: in [Allgather], send is recv[c.Rank()*len(send):][:len(send)]. Buffers that
// overlap in any other way are an *[MPIError].
//
// # Processes that die
//
// With -tags ulfm the other ranks survive the death of a process. [Comm.Shrink] makes a
// communicator of the survivors, [Comm.Replace] one in which spares take the places of the dead,
// and [Comm.Agree] lets the survivors make the same decision.
//
// The package must never know how errors spread (backends do) or how messages do (transports).
package mpicx
