package mpicx

import (
	"fmt"
	"hash/fnv"
)

// A staff is the members of a communicator that Replace makes. The ranks of a process share it.
type staff struct {
	succession
	members  []int  // ranks in the pool
	replaced []int  // ranks in the communicator that are new
	old      []int  // the other members: ranks in the pool
	digest   uint64 // of the members
	// invitation is what fresh ranks compute the staff from. It is empty if there are spares.
	invitation string
	err        error // why the communicator can't be made
}

// fresh returns the new members: ranks in the pool.
func (s *staff) fresh() []int {
	fresh := make([]int, len(s.replaced))
	for i, place := range s.replaced {
		fresh[i] = s.members[place]
	}
	return fresh
}

// staff returns the staff in which spares take the places of dead members. It changes members.
func (s succession) staff(members []int, isDead func(int) bool, spares []int) *staff {
	next := &staff{succession: succession{line: s.line + 1, taken: make(map[int]int)}, members: members}
	for place, r := range members {
		if isDead(r) {
			next.replaced = append(next.replaced, place)
		} else {
			next.old = append(next.old, r)
		}
	}
	next.used = s.used + len(next.replaced)
	if len(next.replaced) > len(spares) || len(next.replaced) == len(members) {
		return &staff{err: &SpareError{Places: next.replaced, Spares: len(spares)}}
	}
	for i, place := range next.replaced {
		next.taken[spares[i]] = s.taken[members[place]] + 1
		members[place] = spares[i]
	}
	digest := fnv.New64a()
	for _, r := range members {
		if n := s.taken[r]; n > 0 {
			next.taken[r] = n
		}
		fmt.Fprintln(digest, r)
	}
	next.digest = digest.Sum64()
	return next
}
