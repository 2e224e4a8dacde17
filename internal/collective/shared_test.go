package collective

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/transport/local"
)

// All ranks of a process share the same bytes.
func TestAllgatherShared(t *testing.T) {
	for n := 1; n <= 20; n++ {
		all := make([]*AllgatherShared, n)
		var want []byte
		for r := range all {
			all[r] = &AllgatherShared{Send: []byte{byte(r), 7}}
			want = append(want, byte(r), 7)
		}
		for _, err := range run(local.New(n), -2, func(r int) Algorithm { return all[r] }) {
			require.NoError(t, err)
		}
		for _, a := range all {
			require.Equal(t, want, a.All)
			require.Same(t, &all[0].All[0], &a.All[0])
		}
	}
}

// A message of another operation is not taken for one of AllgatherShared.
func TestAllgatherSharedMeetsAnother(t *testing.T) {
	errs := run(local.New(2), -2, func(r int) Algorithm {
		if r == 0 {
			return &BcastAny{Buf: []byte("xyz")}
		}
		return &AllgatherShared{Send: []byte("x")}
	})
	require.NoError(t, errs[0])
	require.Equal(t, &LengthError{0, 3, 2}, errs[1])
}
