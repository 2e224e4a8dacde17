package main

import (
	"slices"
	"sync/atomic"

	"github.com/mpicx/go-mpicx/mpicx"
)

// inst is a communicator at one rank: the value of a variable of the program. Its name is the same
// at all its members, and unique.
type inst struct {
	*mpicx.Comm
	name    string
	parent  *inst
	members []int       // their ranks in the world
	taken   []int       // by member: its incarnation
	repair  int         // the step that has made it by Shrink or Replace, or 0
	unwound bool        // this rank has left its Guard by an error of its own
	lost    bool        // a call has returned its CommCorruptedError
	corrupt bool        // a call on it has returned a CommCorruptedError
	closed  atomic.Bool // Close has returned nil
}

// isOwner reports whether err is c's own verdict, and not one of a communicator that c is derived from. In tests of
// the model there is one communicator, which has no Comm.
func (c *inst) isOwner(err error) bool {
	v, ok := err.(interface{ Of(*mpicx.Comm) bool })
	return ok && (c.Comm == nil || v.Of(c.Comm))
}

func (c *inst) rankOf(world int) int { return slices.Index(c.members, world) }

// derivedFrom reports whether c is the communicator of the given name or derived from it.
func (c *inst) derivedFrom(name string) bool {
	for ; c != nil; c = c.parent {
		if c.name == name {
			return true
		}
	}
	return false
}

// inherits reports whether a request to stop on a holds for c: c is derived from a, or a was repaired before c
// was made.
func (c *inst) inherits(a *inst) bool {
	if c.derivedFrom(a.name) {
		return true
	}
	for c.repair == 0 && c.parent != nil {
		c = c.parent
	}
	return (a.name == "world" || a.repair > 0) && c.repair > a.repair
}

// whole reports whether c and all communicators that it is derived from have the same members. Then
// a rank that corrupts one of them corrupts c.
func (c *inst) whole() bool {
	for p := c.parent; p != nil; p = p.parent {
		if len(p.members) != len(c.members) {
			return false
		}
	}
	return true
}
