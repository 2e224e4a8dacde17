// Lesson 7: a transaction commits everywhere or is rolled back everywhere.
//
//	go run -tags ulfm ./examples/ulfm/07-transaction
//
// Every rank has a copy of some accounts, and works on its share of them: it moves a tenth of each
// account to the next. It does so in place and in two phases, with money under way between them, so
// a rank that dies leaves the others with accounts that do not add up. Each rank keeps a
// checkpoint: the accounts as of the last version that all had. What it teaches:
//
//   - The agreement at the end of the transaction decides. All commit, or all go back
//     to the checkpoint; a rank that had finished goes back with the others.
//   - After Agree nothing can fail: committing is local. Survivors are therefore never at different
//     versions, no matter which rank died, and where.
//   - A transaction may commit despite a death, if the dead rank had voted yes or was no longer
//     needed. Agree reports the death to all, so all repair the communicator.
//   - The checkpoint is in memory, at every rank. If ranks have data of their own,
//     a neighbour keeps a copy of it, and commits it with the rest.
//
// Try next: decide by a Barrier instead of Agree, and see the test find the ranks at different
// versions. Let a rank vote no when its balance is negative.
//
// A lesson must use only the public interface of mpicx.
package main
