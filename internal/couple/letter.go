package couple

import (
	"fmt"
	"slices"
)

// A Letter is what one leader sends to the other. Ranks are those of the root, the communicator of
// all ranks of the job.
type Letter struct {
	Failure string // why there can't be an Intercomm; the other fields are then unused
	ID      uint64 // identifies the group's call
	Epoch   uint64 // of the root
	Name    string // of the group's communicator
	Members []int  // of the group
}

// Checked returns l, which the group with the letter own has received. If the two groups can't make
// an Intercomm, the result has a Failure that says why. The root has size ranks.
func (l Letter) Checked(own Letter, size int) Letter {
	switch {
	case l.Failure != "":
	case l.Epoch != own.Epoch:
		l.Failure = "an error of all ranks has come in the meantime"
	case len(l.Members) == 0 || slices.Min(l.Members) < 0 || slices.Max(l.Members) >= size:
		l.Failure = "the other group's letter can't be read"
	case slices.ContainsFunc(l.Members, func(r int) bool { return slices.Contains(own.Members, r) }):
		l.Failure = fmt.Sprintf("%s and %s have a rank in common, expected none", own.Name, l.Name)
	}
	return l
}

// A Union describes the communicator of both groups. It is the same at all its members, but for
// IsFirst.
type Union struct {
	First, Second uint64 // the IDs of both groups' calls
	Name          string
	Members       []int // ranks in the root: those of the first group, and then those of the second
	IsFirst       bool  // this rank's group is the first
}

// UnionOf returns the union of this rank's group and the other one. The first is the one with the
// lower first member.
func UnionOf(own, other Letter) Union {
	first, second := own, other
	if slices.Compare(first.Members, second.Members) > 0 {
		first, second = second, first
	}
	return Union{
		First:   first.ID,
		Second:  second.ID,
		Name:    fmt.Sprintf("%s.intercomm(%s)", first.Name, second.Name),
		Members: slices.Concat(first.Members, second.Members),
		IsFirst: first.ID == own.ID,
	}
}
