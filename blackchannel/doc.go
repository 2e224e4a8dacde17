// Package blackchannel is the error backend that works on any transport: a
// duplicate communicator on which every rank has a receive pending, so that an
// error reaches it whatever it is doing. It follows section III-B of Engwer,
// Altenbernd, Dreier, Göddeke, "A high-level C++ approach to manage local
// errors, asynchrony and faults in an MPI application", with another protocol.
//
// The paper's initiator sends a message to each other rank; then come a barrier,
// an allreduce, a scan, a broadcast and an allreduce. Here all goes along one
// binomial tree rooted at rank 0, in three waves of a single round:
//
//   - Notices flood the tree from wherever an error is raised. A rank passes the
//     first it gets on to its other neighbours and drops the rest, but for the first
//     that says corrupt: where that is a later one it goes on as well, for a program
//     that a signal does not interrupt may wait for it (P8).
//   - Reports flow to the root: a rank sends its own and its children's once it
//     has joined the round and heard all children. A rank joins when its program
//     is inside an operation, so every error raised before the program knew of
//     the others' is in (design rule P2).
//   - The root's verdict flows back, and with it the round is over at each rank.
//
// That is at most 2 messages each way on each of the n-1 edges (3 where somebody
// unwinds in a round that another has opened by a signal), 4 times the
// depth of the tree from the first error to the last verdict, and none while
// there is no error (P6). Messages between neighbours stay in order, so one that
// belongs to a round never meets a rank that has not begun it, and only two can
// meet one that has ended it: see [Machine].
//
// A duplicate of a communicator (MPI_Comm_dup) may be missing at some ranks while
// others have an error on it already. Its first notices go along the same tree of
// the communicator it is derived from, so that all ranks that have it are told at
// once (P8); reports and verdict wait for the others: see family.go.
//
// [Machine] is that protocol without I/O; [Channel] connects one to a
// communicator. Neither must ever know what a report says.
package blackchannel
