// Package checkpoint keeps what a program must not lose, in the memory of other ranks and in
// files: a [Store] saves versions of variables while the program goes on, and restores the
// newest that all ranks can have.
//
//	st, err := checkpoint.Open(ctx, comm, checkpoint.Partner(1))
//	st.Protect("x", &x)
//	f := st.Save(ctx, step) // returns after one local copy
//	v, err := st.Restore(ctx)
//
// What it survives, and what it costs at each rank for S bytes of data:
//
//	                      survives the loss of        memory          sent in a Save
//	Partner(0)            errors, but no rank         2 S             0
//	Partner(r)            any r ranks of a group      2 (1+r) S       r S
//	RS(k, m)              any m ranks of a group      2 (1+m/k) S     m S
//	Dir(path)             all, if the disk does       no more         to a file: S
//
// Memory is that of two versions: the older is whole until the newer counts. [Once] variables
// are there once. While a Save goes on, RS needs m/k S more, and after a repair the older group's
// data are kept until the new group has them. Groups are of 1+r and k+m ranks, or up to twice as many,
// on different machines as far as there are machines; where a scheme loses one rank too many in a group
// the data are lost, and Restore ends in a *[LostError], or has an older version from files. All ranks'
// sizes count as the largest one's.
//
// The calls of a Store are collective: all ranks make the same ones, in the same order, as they
// do operations of a communicator. The store has a communicator of its own, derived from the
// program's, so an error there interrupts the store, too (rule D1):
//
//   - After a *mpicx.PropagatedError the store is usable at once. Save again, or Restore.
//   - After a *mpicx.CommCorruptedError, make a communicator by Shrink or Replace. Then those
//     that have the store call [Store.Rejoin], and those that are new [Open], in the same place:
//     both meet. Then all Restore. See the example.
//   - After the end of the job, the next one opens the same directory.
//
// An error in the middle of a Save leaves the older version as it was, at every rank. Save
// waits for the Save before it, so there is never more than one under way. It is a collective operation
// that begins in the epoch of the call and has its place in no later one; no rank is told an
// error by it but in a Wait for its future, and none joins an error round because of it.
//
// It must never know what the data mean, nor decide whether to go back: that is the
// program's, or package recovery's.
package checkpoint
