package ulfmbackend

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// P8: a notice that says corrupt goes to all ranks that may have only a notice that does not: the
// ranks that this one has told, in the graph or the mended tree, and those that tell it meanwhile.
func TestTheSecondFloodReachesAll(t *testing.T) {
	plain, corrupt := &Message{Kind: Notice, Origin: 1}, &Message{Kind: Notice, Origin: 1, Corrupt: true}
	for told := range 6 { // this many are told by the first flood before the second begins
		tree := newTree(3, 6)
		require.True(t, tree.markDead(2)) // its parent: now that is 0, which is no neighbour
		var f flood
		f.heard(&tree, 1, false)
		f.begin(plain)
		for range told {
			f.pull(&tree)
		}
		f.heard(&tree, 1, true)
		require.True(t, f.isNews(true))
		f.begin(corrupt)
		require.False(t, f.isNews(true) || f.isNews(false))
		f.heard(&tree, 4, false)
		var to []int
		for r := f.pull(&tree); r >= 0; r = f.pull(&tree) {
			to = append(to, r)
		}
		slices.Sort(to)
		require.Equal(t, []int{0, 4, 5}, to, "after %d", told)
	}
}
