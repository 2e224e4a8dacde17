package waiting

import "testing"

// What a Wait that blocks pays for that it can be observed, and is not: beside the same without, of a place
// that is woken at once.
func BenchmarkPlace(b *testing.B) {
	place, cell := NewPlace(), new(Cell)
	b.Run("observable", func(b *testing.B) {
		for b.Loop() {
			place.wake <- struct{}{}
			if place.Observe == nil {
				place.await(nil)
			} else {
				place.awaitObserved(cell, nil)
			}
		}
	})
	b.Run("not", func(b *testing.B) {
		for b.Loop() {
			place.wake <- struct{}{}
			place.await(nil)
		}
	})
}
