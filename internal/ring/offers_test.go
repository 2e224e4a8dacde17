package ring

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// An offer is claimed or withdrawn, never both, and one of them if both try.
func TestOffers(t *testing.T) {
	shared := make([]byte, OffersSize)
	w, r := NewOffers(shared), NewClaims(shared)
	claimed := 0
	for id := uint64(1); id <= 20_000; id++ {
		place := w.Open(id)
		var claim, withdrawn bool
		var both sync.WaitGroup
		both.Go(func() { claim = r.Claim(uint64(place), id) })
		both.Go(func() { withdrawn = w.Withdraw(place, id) })
		both.Wait()
		require.NotEqual(t, claim, withdrawn)
		require.False(t, r.Claim(uint64(place), id), "twice")
		w.Close(place)
		require.False(t, r.Claim(uint64(place), id), "over")
		if claim {
			claimed++
		}
	}
	t.Logf("%d claimed", claimed)
}

func TestPlacesOfOffers(t *testing.T) {
	shared := make([]byte, OffersSize)
	w, r := NewOffers(shared), NewClaims(shared)
	for i := range places {
		require.Equal(t, i+1, w.Open(uint64(i+1)))
	}
	require.Zero(t, w.Open(99))
	w.Close(7)
	require.Equal(t, 7, w.Open(100))
	require.False(t, r.Claim(7, 7), "the offer that was there before")
	require.True(t, r.Claim(7, 100))
	for _, nowhere := range []uint64{0, places + 1, 1 << 63} {
		require.False(t, r.Claim(nowhere, 1))
	}
}
