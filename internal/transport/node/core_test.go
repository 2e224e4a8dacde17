package node

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A goroutine that waits yields at once where another process of the job needs its core, and only
// there.
func TestCore(t *testing.T) {
	const toNobody, toAProcess, toAProgram = 300 * time.Nanosecond, 5 * time.Microsecond, 3 * time.Millisecond
	wait := func(yields ...time.Duration) []time.Duration { return yields } // for a packet, with yields of these durations
	met := wait(toAProcess)
	lonely := slices.Repeat([][]time.Duration{wait(toNobody)}, apart-1)
	for _, test := range []struct {
		name  string
		waits [][]time.Duration
		want  bool // polite
	}{
		{"alone", [][]time.Duration{wait(), wait(toNobody, toNobody)}, false},
		{"slow calls", [][]time.Duration{wait(1500 * time.Nanosecond)}, false},
		{"another program", [][]time.Duration{wait(toAProgram)}, false},
		{"a process that ran before, and did not send what came", [][]time.Duration{wait(toAProcess, toNobody), wait()}, false},
		{"met", slices.Concat([][]time.Duration{met}, lonely), true},
		{"met again: it counts from the last time", slices.Concat([][]time.Duration{met}, lonely, [][]time.Duration{met}, lonely), true},
		{"met, and apart again", slices.Concat([][]time.Duration{met}, lonely, [][]time.Duration{wait()}), false},
		{"met, and another program comes", [][]time.Duration{met, wait(toAProgram)}, false},
	} {
		for _, crowded := range []bool{false, true} {
			c := core{crowded: crowded}
			for _, yields := range test.waits {
				for _, y := range yields {
					c.yielded(y)
				}
				c.came()
			}
			assert.Equal(t, test.want || crowded, c.polite(), "%s, crowded %t", test.name, crowded)
		}
	}
}
