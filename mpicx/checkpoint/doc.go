// Package checkpoint keeps what a program must not lose, in the memory of other ranks and in
// files. A [Store] saves versions of variables while the program continues to compute, and
// restores the newest version that all ranks can have.
//
//	st, err := checkpoint.Open(ctx, comm, checkpoint.Partner(1))
//	st.Protect("x", &x)
//	f := st.Save(ctx, step) // returns after one local copy
//	v, err := st.Restore(ctx)
//
// What a store survives, and what it costs at each rank for S bytes of data:
//
//	                      survives the loss of        memory          sent in a Save
//	Partner(0)            errors, but no rank         2 S             0
//	Partner(r)            any r ranks of a group      2 (1+r) S       r S
//	RS(k, m)              any m ranks of a group      2 (1+m/k) S     m S
//	Dir(path)             all, if the disk does       no more         to a file: S
//
// There is memory for two versions, because the older is kept until the newer counts. Variables
// protected with [Once] are kept once. During a Save, RS needs m/k S more. After a repair the
// data of the old groups are kept until the next Save. The largest rank's size counts for all.
//
// Groups have 1+r or k+m ranks, or up to twice as many, on different machines as far as there
// are enough machines. If a group loses one rank more than its scheme survives, the data are
// lost: Restore then returns an older version from files, or a *[LostError].
//
// A Save with files ends when all ranks have written theirs, and the manifest in each directory
// lists the version. Files that are missing are therefore lost data, and not data that were never
// saved. If they come back, the next job uses them: no Save removes what is left of a lost version
// until as many newer versions are whole as [Keep] says.
//
// The calls of a Store are collective: all ranks make the same calls in the same order, as with
// operations of a communicator. The store has a communicator of its own that is derived from
// the program's, so an error of the program's communicator interrupts the store, too:
//
//   - After a *mpicx.PropagatedError the store can be used at once. Save again, or Restore.
//   - After a *mpicx.CommCorruptedError, make a communicator by Shrink or Replace. Ranks that
//     have the store call [Store.Rejoin] on it, and new ranks call [Open] in the same place.
//     Then all call Restore. See the example.
//   - After the end of the job, the next job opens the same directory.
//
// An error during a Save leaves the older version unchanged at every rank. A Save waits for the
// Save before it, so at most one is running. Its messages belong to the epoch in which Save was
// called. A rank learns of an error of a Save only by a Wait for its future, and a Save has no
// rank join an error round.
//
// It must never know what the data mean, nor decide whether to go back: that is up to the
// program, or to package recovery.
package checkpoint
