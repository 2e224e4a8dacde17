package couple

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAgainst(t *testing.T) {
	own := Letter{ID: 1, Epoch: 3, Name: "left", Members: []int{0, 1}}
	for _, test := range []struct {
		letter Letter
		want   string
	}{
		{Letter{ID: 2, Epoch: 3, Name: "right", Members: []int{2, 4}}, ""},
		{Letter{Failure: "no"}, "no"},
		{Letter{Epoch: 2, Members: []int{2}}, "an error of all ranks has come in the meantime"},
		{Letter{Epoch: 3}, "the other group's letter can't be read"},
		{Letter{Epoch: 3, Members: []int{2, 5}}, "the other group's letter can't be read"},
		{Letter{Epoch: 3, Members: []int{-1, 2}}, "the other group's letter can't be read"},
		{Letter{Epoch: 3, Name: "right", Members: []int{2, 1}}, "left and right have a rank in common, expected none"},
	} {
		require.Equal(t, test.want, test.letter.Checked(own, 5).Failure)
	}
}

func TestUnionOf(t *testing.T) {
	left, right := Letter{ID: 7, Name: "left", Members: []int{1, 3}}, Letter{ID: 5, Name: "right", Members: []int{2, 0}}
	want := Union{First: 7, Second: 5, Name: "left.intercomm(right)", Members: []int{1, 3, 2, 0}, IsFirst: true}
	require.Equal(t, want, UnionOf(left, right))
	want.IsFirst = false
	require.Equal(t, want, UnionOf(right, left))
}
