// Package couple decides how two groups of ranks that do not know each other meet, to make an
// Intercomm: what their letters say, and how a group learns that the call of the other has failed.
// It must never know what a communicator is, how messages travel, or how a group agrees.
//
// Each group agrees that all its members have called. Then its leader sends a [Letter] to the other
// leader, so if a letter comes from a group, all its living members will learn how the call ends.
// Each group agrees on the letter that its leader has received, so all its living members know both
// groups, or none does. The members that know both agree on the [Union]. If a group does not know
// the other, its members do not take part: the call has failed at all of them, and their [Registry]
// says so to members of the other group, which ask.
package couple
