// Lesson 7: a transaction commits everywhere or is rolled back everywhere.
//
//	go run -tags ulfm ./examples/ulfm/07-transaction
//
// Every rank has a copy of some accounts, and works on its share of them: a tenth
// of each goes to the next. That is done in place and in two phases, with money
// under way between them, so a rank that dies leaves the others with accounts
// that do not add up. Each keeps a checkpoint: the accounts as of the last version
// that all had. What is learnt:
//
//   - The agreement at the end of the transaction decides. All commit, or all go
//     back to the checkpoint; a rank that was finished goes back with the others.
//   - After Agree nothing can fail: committing is local. So survivors are never at
//     different versions, whoever died and wherever.
//   - Deaths may come with a commit, too: the dead had said yes, or nobody had
//     needed it any more. Agree tells all alike, so all repair the communicator.
//   - The checkpoint is in memory, at every rank. Where ranks have data of their own,
//     a neighbour keeps a copy of it, and commits that with the rest.
//
// Try next: decide by a Barrier instead of Agree, and see the test find the ranks
// at different versions. Let a rank vote no when its balance is negative.
//
// A lesson must never know more of mpicx than its face.
package main
