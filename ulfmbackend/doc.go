// Package ulfmbackend is the error backend that survives the death of processes:
// revoke, agree and shrink (ULFM), as protocols of our own over any
// transport that tells who has died. It must never know what a report says, nor how
// deaths are detected.
//
// It follows Bland et al., "A Proposal for User-Level Failure Mitigation"
// (paper 001) for what the operations mean; Bouteiller, Bosilca, Dongarra,
// "Plan B" (paper 000) for revoke; Herault et al., "Practical Scalable Consensus
// for Pseudo-Synchronous Distributed Systems", SC'15, for agreement; and Engwer
// et al. (paper 004, section III-C) for what becomes of an error:
//
//   - A notice of it floods the binomial graph: a rank that gets it first passes
//     it on to its neighbours, once (paper 000, section 3). The round number in
//     it is the epoch that tells a late notice from one of the next error. If a round
//     is open by a signal, and a rank unwinds or needs the dead, a notice that says
//     so follows in the same way: a program that no signal interrupts may wait for
//     that (P8). Proposals, which stand for notices, say it too.
//   - Then all agree. The paper agrees on whether the communicator is corrupted,
//     shrinks, and gathers the codes. Here one agreement does it all: its value
//     is the AND of flags, the union of the dead, and the union of the reports.
//   - If nobody is dead and nobody unwound, the communicator goes on, with its
//     epoch moved (design rule P3); else it is corrupted for good.
//
// # Agreement
//
// It is the early-returning agreement (ERA) of Herault et al. over the binomial
// tree rooted at rank 0. Proposals are combined up the tree; the root
// decides; the decision goes down, and each rank returns as soon as it has it
// and has passed it on. Without deaths that is one message each way on each of
// the n-1 edges, two depths of the tree.
//
// Deaths mend the tree, at each rank as it learns of them. A rank's parent is
// its nearest ancestor that is alive, or, if none is, the lowest living rank,
// which is the root. A rank whose parent has died tells the new one the last
// decision it has, if it has one, and its proposal to the current agreement,
// if that was complete. Values are combined by AND, union and intersection, so
// that nothing is counted twice.
//
// Why it is uniform. Deaths are told accurately: who is told dead is dead. So
// two roots never live at the same time: each is lower than the next, and dead
// when the next one begins. Let root r have decided v, and let a living rank z
// have got it. Consider the chain of ranks that v came down by, from r to z, and
// on it the first one alive, a. Between two neighbours of the chain, all
// ancestors of the second below the first are dead; so are those before a on the
// chain, and r. So a has no living ancestor: it is a child of the new root, or
// the new root itself. The new root decides only when it has heard all its
// children, as their parent; and a rank takes a decision from above only from
// its parent of the moment. So a has either got v before and says so, and then
// the new root takes it over; or it will not take it any more, and nobody alive
// has it. Thus no two survivors ever decide differently, whoever dies when. (A
// rank that decided and died, with all that it had passed the decision to, takes
// it with it: returning early costs that, in MPI as here. Nobody alive can tell.)
//
// Why it ends. A rank waits for its children's proposals and its parent's
// decision only. Whoever of them dies is replaced at each side, and both sides
// learn of it. There are finitely many deaths.
//
// A rank remembers one decision for those that may ask. That is enough: it
// proposes to an agreement only when it has the one before, and nobody
// decides without the proposal of every rank that lives and whose program
// goes on.
//
// # Errors and agreements
//
// They are one order (H5): an agreement that one survivor has completed, all complete,
// though an error, of the communicator or of one that it is derived from, would have
// ended it.
//
//   - Who joins a round of errors is frozen, on that communicator and all derived from
//     it: it takes and passes on proposals, but drops decisions, and decides
//     nothing as the root. Its report has the last decisions that it knows of; the
//     verdict has the union, and each rank completes those that it has proposed to,
//     before it goes on to the next epoch. One decision of each stream is enough, for
//     the reason above. Whoever has decided anything did so before it joined; so if it
//     lives, its report has that, and if nobody who lives has it, nobody will.
//   - Two ranks may leave an epoch by different verdicts: U by that of child Q, before
//     it joins a round of parent P, W by that of P, before that of Q comes. So each
//     remembers what became of recent epochs. It reports that with what is new, until a
//     second error of one communicator has come: then nobody is in that epoch any more.
//   - A dead rank may have reported a decision to one of both rounds. W, which has
//     joined Q as well, cannot know at P's verdict, which counts that rank among the
//     dead: its agreement stays open until all the rounds are over that it has joined,
//     and is completed if one verdict says so. A verdict to which all members have
//     consented leaves nothing open.
//   - And where an agreement has ended without a decision, the rank that had
//     proposed to it says so in what it joins next. Within a verdict, that is
//     stronger than a decision. Why that is right: of the sets of verdicts by which two
//     living ranks left an epoch, one is part of the other. (Let r be in the first
//     only. The second rank had to join r, but left the epoch before; and the other way
//     round for one in the second only. Both can't be.) So the rank that left by fewer
//     has joined all the others afterwards, and said there how the agreement had ended.
//   - A verdict may have two decisions of one agreement, one of which died with all who
//     had it but for a report. Roots follow each other in the order of ranks; so that of
//     the highest is the one that the living have.
//
// Testdata/scenarios/ulfm has these cases, as h5_*.txt.
//
// # Ranks whose program has ended
//
// Such a rank still passes on what it gets, and its channel's client joins every round
// of errors at once: others may hear of one through it, and it may have raised
// something. To what programs ask for it proposes nothing, and counts as dead there. It tells
// its parent when its whole subtree is like that, so that nobody waits for it. So
// it may be many agreements behind when deaths bring it children that still
// propose: it goes on with theirs. These n-1 messages at the end of a job, 2(n-1) when all
// close a communicator, and those of agreements that programs ask for, are the only ones
// that the channel carries without an error (P6).
//
// # Native
//
// With -tags "mpi ulfm native" the MPI library revokes and agrees (transport.Library), on the
// world of all processes. Communicators derived from it, and goroutine ranks, have the
// protocols above. What is different:
//
//   - Notices and revokes are MPIX_Comm_revoke of a communicator that stands for them: one for
//     each round of signals, one for corruptions, one for the program's Revoke. A revoke
//     carries nothing, so the client is told that it learned of it from itself.
//   - Proposals go up a binomial tree of the ranks that all hold for alive, as messages: they
//     have no fixed length. What the root has of all goes down as a candidate. Each rank that gets
//     it passes it on and votes, by MPIX_Comm_iagree: for it, or not, because it is frozen or in
//     another epoch. It is decided if all have voted for it.
//   - A rank that waits while somebody in the tree is dead votes without a candidate, so that
//     no vote waits for one that will never come. Each vote also says who is alive. So all have the
//     same tree after it, without those whom anybody holds for dead, and propose again.
//   - All votes on a communicator are one sequence, of which the root opens each, or
//     deaths do. Who has left proposes nothing to all that the others agree on, and votes;
//     who is dead for the others though its process lives votes for whatever they decide.
//
// Why it is uniform: all living ranks that vote get the same result (MPI), those whose
// vote was for a candidate all have that one, since only the root of the tree sends any,
// one a vote, and where one rank has not got it the result is against it. Freeze, Complete and
// Advance do with decisions what they do with those above: who is frozen takes none.
package ulfmbackend
