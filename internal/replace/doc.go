// Package replace decides which ranks take the places of the dead in the communicators that Replace
// makes, and tells these ranks. It must never know what a communicator is, how messages travel, how
// the members of a communicator agree that others have died, or how a process is started.
//
// A job that can replace the dead has more ranks than its program sees. All of them, numbered from
// 0, are the pool. Its first ranks work from the beginning; the others wait to take a place, as
// rescues: a spare is there from the beginning, and a fresh rank is started when it is needed. A
// rank that has not been started is like one that is slow to begin: messages to it wait.
//
// When the members of a communicator have agreed on its dead, [Machine.Successor] computes the
// [Membership] of the next communicator. Each member that learns the decision makes that
// communicator at once, and invites every rescue in it. All members do so, therefore the death of a
// member does not matter.
//
// A member may receive a decision, invite rescues and die, while the survivors make another
// decision. So a rank accepts an invitation only when every member before it has sent the same one
// or has died, and one rank that has sent it lives. The members before it are the old members and
// the rescues with lower ranks. Old members that live at the same time have the same
// decision, so no living one has another. A rescue that has accepted an invitation sends it to the
// other rescues, so they do not accept another one. Members that have died are dead members of the
// new communicator.
//
// If all ranks that know a decision die, the rescues in it wait for an invitation of the next
// decision. Only the ranks before a waiting rank can invite it. If no invitation comes, it ends
// when all of these have died or ended. To let it know, it greets them, and a rank whose program
// ends tells the ranks that have greeted it.
package replace
