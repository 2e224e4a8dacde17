package ulfmbackend

import (
	"fmt"
	"slices"
	"testing"
)

// A library is the MPI library with ULFM of a universe: every message of it reaches every living
// rank eventually.
type library struct {
	votes   [][][]uint32 // by number and rank
	results [][]uint32   // once a rank has one
	told    []int        // votes, by rank
	revoked bool
}

// withLibrary has the machines of u begin with one.
func (u *universe) withLibrary() {
	u.library = &library{told: make([]int, len(u.machines))}
	for _, m := range u.machines {
		m.Native()
	}
}

func (l *library) vote(r int, words []uint32) {
	k := l.told[r]
	if k == len(l.votes) {
		l.votes = append(l.votes, make([][]uint32, len(l.told)))
		l.results = append(l.results, nil)
	}
	if l.votes[k][r] != nil {
		panic(fmt.Sprintf("rank %d votes twice in %d", r, k))
	}
	l.votes[k][r] = words
}

// result is what a vote comes to: all that was brought, by the dead as well.
func (l *library) result(k int) []uint32 {
	if l.results[k] == nil {
		for _, words := range l.votes[k] {
			switch {
			case words == nil:
			case l.results[k] == nil:
				l.results[k] = slices.Clone(words)
			default:
				for i, w := range words {
					l.results[k][i] &= w
				}
			}
		}
	}
	return l.results[k]
}

// libraryEvents visits what may come next of the library.
func (u *universe) libraryEvents(visit func(string, func(*universe))) {
	l := u.library
	if l == nil {
		return
	}
	for r, m := range u.machines {
		if !u.alive(r) {
			continue
		}
		if k := l.told[r]; k < len(l.votes) && l.votes[k][r] != nil && l.isOver(u, k) {
			visit(fmt.Sprintf("%d is told of vote %d", r, k), func(u *universe) {
				l.told[r]++
				u.feed(r, func(m *Machine) { m.Voted(slices.Clone(l.result(k))) })
			})
		}
		if l.revoked && !m.revoked {
			visit(fmt.Sprintf("%d hears of the revoke", r), func(u *universe) {
				u.feed(r, func(m *Machine) { m.Revoked(r) })
			})
		}
	}
}

// isOver says whether all living ranks have voted.
func (l *library) isOver(u *universe, k int) bool {
	for r := range u.machines {
		if u.alive(r) && l.votes[k][r] == nil {
			return false
		}
	}
	return true
}

// H4, H5, P1, P2, P8, C2: what the sampled universes show of our own protocols holds over
// an MPI library too.
func TestNativeSampled(t *testing.T) { sampleErrors(t, 12000, 9, 7, (*universe).withLibrary) }

func TestNativeCorruptionsSampled(t *testing.T) {
	sampleCorruptions(t, 6000, 10, (*universe).withLibrary)
}
