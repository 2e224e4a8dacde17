// Package ulfmbackend is the error backend that survives the death of processes. It
// implements revoke, agree and shrink (ULFM) by its own protocols, over any transport that
// reports deaths. It must never know what a report says, nor how deaths are detected.
//
// The operations mean what Bland et al., "A Proposal for User-Level Failure Mitigation"
// (paper 001), say. Revoke follows Bouteiller, Bosilca, Dongarra, "Plan B" (paper 000).
// Agreement follows Herault et al., "Practical Scalable Consensus for Pseudo-Synchronous
// Distributed Systems", SC'15. The treatment of errors follows Engwer et al. (paper 004,
// section III-C):
//
//   - A notice of the error floods the binomial graph: a rank passes it on to its
//     neighbours once, when it first gets it (paper 000, section 3). The notice carries the
//     number of its round, which distinguishes it from a notice of the next error. If a
//     rank unwinds, or needs a dead one, while a round is open because of a signal, a
//     second notice says that the verdict will be final. It floods in the same way, because
//     a program that no signal interrupts may be waiting for a corruption (P8). A proposal
//     stands for a notice, so it says this too.
//   - Then all ranks agree. In the paper they agree on whether the communicator is
//     corrupted, shrink it, and gather the codes. Here one agreement does all three: its
//     value is the AND of flags, the union of the dead, and the union of the reports.
//   - If no rank is dead and none has unwound, the communicator works again, in its next
//     epoch (P3). Otherwise it is corrupted, which is final.
//
// # Agreement
//
// The protocol is the early-returning agreement (ERA) of Herault et al. over the binomial
// tree rooted at rank 0. Proposals are combined on their way up the tree. The root decides.
// The decision goes down the tree; each rank returns when it has the decision and has
// passed it on. Without deaths this takes one message each way on each of the n-1 edges,
// and the time of two depths of the tree.
//
// Each rank mends the tree when it learns of a death. A rank's parent is its nearest living
// ancestor or, if it has none, the lowest living rank, which is the root. A rank whose
// parent has died sends to its new parent the last decision that it has, if any, and its
// proposal to the current agreement, if all its children's are in it. Values are combined
// by AND, union and intersection, so a value that arrives twice changes nothing.
//
// Uniformity: two survivors never decide differently, no matter which ranks die and when.
//
// A rank that is reported dead is dead. Two roots therefore never live at the same time:
// each root is a higher rank than the one before, which is dead when the next one begins.
// Let r be a root that has decided v and died, and z a living rank that has got v. Consider
// the chain of ranks that passed v on from r to z, and let a be the first living rank on it.
//
// First, a has no living ancestor. An ancestor of a is either on the chain before a, and
// dead by the choice of a; or the chain passes it by. A rank's parent is its nearest living
// ancestor, or the root if no ancestor lives, and r was the root because it had no living
// ancestor. So an ancestor that the chain passes by was already dead. Therefore a is the new
// root, or a child of it.
//
// Second, the new root does not decide anything else. It decides only when it has a proposal
// from each of its children, which they send to it as their parent, and a rank takes a
// decision from above only from its present parent. If a got v before it turned to the new
// root, it has sent v first, and the new root takes v over. If not, a drops v when it comes,
// so v has not come to z by way of a.
//
// A rank may decide and then die together with all ranks that it has passed the decision to.
// The survivors may then decide differently from it. This is the price of returning early,
// here as in MPI; no living rank can see it.
//
// Termination: a rank waits only for its children's proposals and its parent's decision. If
// one of these ranks dies, another takes its place on both sides, and both learn of it. The
// number of deaths is finite.
//
// Memory: a rank remembers one decision of each stream, for ranks that may ask for it. One
// is enough. A rank proposes to an agreement only when it has the decision of the one
// before, and no root decides without the proposals of all living ranks.
//
// # Errors and agreements
//
// Errors and agreements have one order (H5): if one survivor has completed an agreement,
// all survivors complete it, even if an error of the communicator, or of one that it is
// derived from, would otherwise have ended it. The rules that achieve this are below; the
// scripts testdata/scenarios/ulfm/h5_*.txt show each case.
//
// Freeze. A rank that joins a round of errors is frozen on that communicator and on all that
// are derived from it. It still takes proposals and passes them on, but it drops decisions,
// and if it is the root it decides nothing. Its report contains the last decision of each
// stream that it knows; one is enough, as above. The verdict contains the union of these.
// Each rank completes those of the verdict's agreements that it has proposed to, and then
// goes to the next epoch. This is enough for a single round: a rank that has a decision got
// it before it joined. If the rank lives, its report has the decision. If no living rank has
// the decision, none will get it.
//
// Two verdicts. Let communicator Q be derived from P. Rank U may leave an epoch of Q by the
// verdict of a round of Q, before it joins a round of P. Rank W may leave the same epoch by
// the verdict of P's round, before Q's verdict arrives. Each rank therefore remembers how
// the agreements of recent epochs ended, and reports this with whatever is new. It forgets
// an epoch when two errors of the same communicator have come after it. All ranks have left
// the epoch by then, because a rank joins the second of these rounds after the first.
//
// Open agreements. Let a rank with a decision die after it has reported the decision to only
// one of these two rounds, that of Q, and let W have joined both. P's verdict counts that
// rank among the dead, and W cannot know from it whether Q's verdict has the decision. W's
// agreement therefore stays open until all rounds that W has joined are over, and is
// completed if one of their verdicts has the decision. After a verdict to which all members
// have consented, nothing stays open.
//
// Ends without a decision. If an agreement has ended without a decision at a rank that had
// proposed to it, the rank says so in the next round that it joins. In a verdict, this
// overrules a decision. To show that it is right to, let S(x) be the set of verdicts by which
// rank x has left the epoch: those of the rounds that x had joined, up to the time when none
// of them was open. For two living ranks x and y, one of S(x) and S(y) contains the other.
// Otherwise there is a verdict r in S(x) alone and a verdict s in S(y) alone. Verdict r needs
// that y joins its round, and y has done so after it left the epoch, so after s. Likewise x
// has joined the round of s after r. So each of r and s is later than the other, which is
// impossible. The rank with the smaller set has thus joined all the other rounds after it
// had left the epoch, and has said there how the agreement ended.
//
// Two decisions. A verdict may have two decisions of one agreement. The ranks that had
// completed it by one of them have all died, one of them after it had reported that
// decision. Each root is a higher rank than the roots before it, so the living ranks have
// the decision of the highest of the roots.
//
// # Ranks whose program has ended
//
// Such a rank still passes messages on, and the client of its channel joins every round of
// errors at once: others may hear of the round through this rank, and it may have raised an
// error itself. To each agreement that programs ask for it makes an empty proposal, as soon
// as it can, and counts as dead there. When all programs have ended, nothing more is decided.
//
// Without an error the channel carries only these messages (P6): the first of these proposals,
// which take 2(n-1) messages at the end of a job; as many when all ranks close a communicator; and
// the messages of agreements that programs ask for.
//
// # Native
//
// With -tags "mpi ulfm native" the MPI library revokes and agrees (transport.Library) on the
// world of all processes. Communicators that are derived from the world, and goroutine
// ranks, use the protocols above. The differences are:
//
//   - The program's Revoke is MPIX_Comm_revoke of a communicator of the library. Notices of errors
//     flood, as above: there may be one for each round, and a communicator is revoked once.
//   - Proposals have no fixed length, so they are messages, which go up a binomial tree of
//     the ranks that all ranks take for living. The root sends its combination of all
//     proposals down the tree, as a candidate. A rank that gets the candidate passes it on
//     and votes, by MPIX_Comm_iagree: for it, or against it if the rank is frozen or in
//     another epoch. The candidate is decided if all vote for it.
//   - A rank that waits while a member of the tree is dead votes without a candidate, since
//     the others' vote may wait for a candidate that never comes. Each vote also says which
//     ranks the voter takes for living. After the vote all ranks therefore have the same
//     tree, without the ranks that any voter took for dead, and they propose again.
//   - All votes on a communicator are one sequence. The root opens a vote, or a death does.
//     A rank that is dead for the others, although its process lives, votes for whatever they
//     decide.
//
// It is uniform: all living ranks that vote get the same result, by MPI's promise. All that
// have voted for a candidate have the same one, because only the root of the tree sends
// candidates, and it sends one for each vote. If a rank has not got the candidate, the
// result is against it. Freeze, Complete and Advance treat decisions as in the protocols
// above: a frozen rank takes none.
package ulfmbackend
