package waiting

import "testing"

// BenchmarkPlace compares a Wait that blocks and could be observed with one that could not, in a
// place that is woken at once.
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
