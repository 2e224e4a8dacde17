package fault

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A process that takes a dead one's place has the faults that have not struck there.
func TestInherit(t *testing.T) {
	var all []Fault
	for _, spec := range []string{
		"rank=1,iter=39,kind=nan", "rank=1,iter=40,kind=die", "rank=1,iter=40,kind=nan", "rank=1,iter=60,kind=panic",
		"rank=1,recovery=1,kind=die", "rank=1,recovery=2,kind=die", "rank=2,iter=1,kind=die",
	} {
		f, err := Parse(spec)
		require.NoError(t, err)
		all = append(all, f)
	}
	in := NewInjector(all, 1)
	in.Inherit(39, 1) // it died after iteration 40, which its peers have not counted
	var left []string
	for _, i := range in.Injections {
		left = append(left, i.String())
	}
	require.Equal(t, []string{"rank=1,iter=40,kind=nan", "rank=1,iter=60,kind=panic", "rank=1,recovery=2,kind=die"}, left)
}
