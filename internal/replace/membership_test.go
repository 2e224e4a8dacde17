package replace

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// after returns the membership in which ranks 5 and 6 of 8 have taken the places of ranks 0 and 4.
func after() *Membership {
	was := &Membership{Number: 2, next: 5, incarnations: map[int]int{4: 1}}
	return was.follow([]int{0, 4, 2, 3}, []int{0, 1}, []int{5, 6})
}

func TestFollow(t *testing.T) {
	require.Equal(t, &Membership{
		Number: 3, Members: []int{5, 6, 2, 3}, Places: []int{0, 1}, next: 7, incarnations: map[int]int{5: 1, 6: 2}, invitation: after().encode(),
	}, after())
	require.Equal(t, "world.replace2", after().Name())
	require.Equal(t, []int{5, 6}, after().Rescues())
	again := after().follow([]int{5, 6, 3}, []int{2}, []int{7}) // rank 2 was left out by Shrink
	require.Equal(t, map[int]int{5: 1, 6: 2, 7: 1}, again.incarnations)
	require.NotEqual(t, after().Digest(), again.Digest())
}

func TestInvitation(t *testing.T) {
	const rank, size = 6, 8
	text := after().encode()
	m, err := readInvitation(text, rank, size)
	require.NoError(t, err)
	require.Equal(t, after(), m)
	for n := range len(text) {
		_, err := readInvitation(text[:n], rank, size)
		require.Error(t, err)
	}
	for want, m := range map[string]*Membership{
		"rank 6 is not one of the members [2 3]": {Members: []int{2, 3}, next: 7},
		"rank 6 is a member twice":               {Members: []int{6, 2, 6}, next: 7},
		"no member was one before":               {Members: []int{6, 5}, Places: []int{0, 1}, next: 7},
		"rank 6, expected less than 6":           {Members: []int{6, 2}, next: 6},
		"number of ranks 9, expected less":       {Members: []int{6, 2}, next: 9},
	} {
		_, err := readInvitation(m.encode(), rank, size)
		require.ErrorContains(t, err, want)
	}
}

func FuzzInvitation(f *testing.F) {
	f.Add(after().encode())
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		if m, err := readInvitation(text, 6, 8); err == nil {
			again, err := readInvitation(m.encode(), 6, 8)
			require.NoError(t, err)
			again.invitation = m.invitation
			require.Equal(t, m, again)
		}
	})
}
