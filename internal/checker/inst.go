package main

import (
	"slices"

	"github.com/mpicx/go-mpicx/mpicx"
)

// inst is a communicator at one rank: what a variable of the program holds. Its name
// is the same at all its members, and no other has it.
type inst struct {
	*mpicx.Comm
	name    string
	parent  *inst
	members []int // their ranks in the world
	unwound bool  // this rank has left Guard by an error of its own
	lost    bool  // a call has returned a CommCorruptedError of it
	// doubtful says that the CommCorruptedError may have been of another communicator,
	// which was corrupted in the same words.
	doubtful bool
	corrupt  bool // a call on it has returned a CommCorruptedError
	closed   bool // Close has returned nil
}

func (c *inst) rankOf(world int) int { return slices.Index(c.members, world) }

// derivedFrom says whether c is the communicator of the given name or derived from it.
func (c *inst) derivedFrom(name string) bool {
	for ; c != nil; c = c.parent {
		if c.name == name {
			return true
		}
	}
	return false
}

// whole says whether c and all that it is derived from have the same members, so that
// who corrupts one of those corrupts c.
func (c *inst) whole() bool {
	for p := c.parent; p != nil; p = p.parent {
		if len(p.members) != len(c.members) {
			return false
		}
	}
	return true
}
