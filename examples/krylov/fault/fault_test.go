package fault

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseRecoveryFault(t *testing.T) {
	f, err := Parse("rank=3,recovery=2,kind=die")
	require.NoError(t, err)
	require.Equal(t, "rank=3,recovery=2,kind=die", f.String())
	for spec, want := range map[string]string{
		"rank=3,recovery=2,iter=4,kind=die": "iter=4 and recovery=2, expected one of them",
		"rank=3,recovery=0,kind=die":        `recovery "0", expected a number from 1`,
		"rank=3,recovery=1,kind=nan":        `recovery with kind "nan", expected it with error, panic or die only`,
		"rank=3,kind=die":                   "no iter",
	} {
		_, err := Parse(spec)
		require.ErrorContains(t, err, want, spec)
	}
}

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

func FuzzParse(f *testing.F) {
	for _, s := range []string{"rank=3,iter=40,kind=nan", "kind=bitflip,bit=62,rank=0,iter=0", "rank=-1", ",,,", "rank=1,rank=2", "rank=1,recovery=2,kind=die", "iter=99999999999999999999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		parsed, err := Parse(s)
		if err == nil && (parsed.Rank < 0 || parsed.Iter < 0 || parsed.Bit < 0 || parsed.Bit > 63) {
			t.Errorf("%q: %+v", s, parsed)
		}
	})
}
