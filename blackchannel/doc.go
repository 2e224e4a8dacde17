// Package blackchannel is the error backend that works on any transport. Each communicator has a
// duplicate on which every rank always has a receive pending, so an error reaches every rank no
// matter what its program is doing. It follows section III-B of Engwer, Altenbernd, Dreier,
// Göddeke, "A high-level C++ approach to manage local errors, asynchrony and faults in an MPI
// application", with another protocol.
//
// In the paper the initiator sends a message to each other rank. A barrier, an allreduce, a scan, a
// broadcast and an allreduce follow. In this package all messages go along one binomial tree rooted
// at rank 0, in three waves of a single round:
//
//   - Notices flood the tree from each rank that raises an error. A rank passes the first notice
//     that it gets on to its other neighbours, and drops later ones. If a later notice is the first
//     that says corrupt, it passes that on too, because a program that a signal does not interrupt
//     may wait for it (P8).
//   - Reports go to the root. A rank sends its own and its children's reports when it has joined
//     the round and has the reports of all children. A rank joins when its program is inside an
//     operation. So the verdict contains every error that a rank raised before its program knew of
//     the errors of other ranks (P2).
//   - The root's verdict goes back down the tree, and ends the round at each rank.
//
// This takes at most 2 messages each way on each of the n-1 edges, or 3 if a rank unwinds in a
// round that another has opened by a signal. From the first error to the last verdict it takes 4
// times the depth of the tree. Without errors there are no messages but Closed (P6). Messages
// between neighbours stay in order, so a message of a round never comes to a rank that has not
// begun the round, and only late Reports can come to a rank that has ended it: see [Machine].
//
// When there is an error on a duplicate (MPI_Comm_dup), some ranks may not have made the duplicate
// yet. Its messages therefore use the tree of the communicator that it was duplicated from, so all
// ranks that have made the duplicate are told at once (P8). Reports and verdict wait for the other
// ranks: see copies.go.
//
// A communicator is forgotten when all ranks have closed it, by what paper 000 (section 3.3)
// calls a background barrier, "a binomial reduce-broadcast sequence", with two messages on each
// edge: a rank sends Closed to its parent when all ranks of its subtree have released the
// communicator and no round is open here; when it is the root that finds this, it sends Closed
// to its children, and they to theirs (H6). Errors may come meanwhile, and ranks that have
// released take part in their rounds. But when the root finds that all have released, no round
// is open anywhere, and none follows:
//
//   - A rank that has released raises nothing more, and it sends Closed only after the verdicts
//     with all that it has raised before. So the root, to which Closed comes later still, has
//     ended all rounds.
//   - The root's Closed follows its last verdict on each edge. So each rank has ended the last
//     round when it is told.
//   - Nor is a message under way to a rank that is told. What goes down goes before the Closed
//     that tells it. What a child has sent before its own Closed has come before that.
//     Afterwards no rank of the child's subtree raises, so the child sends at most one Reports
//     for each round, and the verdict waits for that.
//
// A rank that has released a communicator makes no duplicates of it any more, and has released
// those that it made. So Closed about a communicator stands for all its duplicates, also for
// those which ranks of the subtree have never made and know nothing of. A rank whose program has
// ended counts as having released all communicators: it owes nothing, and those that continue
// can forget theirs.
//
// [Machine] is the protocol without I/O; [Channel] connects one to a communicator. Neither must
// ever know what a report says.
package blackchannel
