//go:build !linux

package bell

import "time"

// Rings says whether a ring wakes a sleeper at once. Here the sleeper looks from time to time.
const Rings = false

// sleep sleeps for this time if the Bell is armed.
func (b *Bell) sleep(most time.Duration) {
	if b.Armed() {
		time.Sleep(most)
	}
}

func wake(*uint32) {}
