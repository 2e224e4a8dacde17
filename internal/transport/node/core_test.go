package node

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A goroutine that waits yields at once where another process of the job needs its core, and only there.
func TestCore(t *testing.T) {
	const toNobody, toAProcess, toAProgram = 300 * time.Nanosecond, 5 * time.Microsecond, 3 * time.Millisecond
	wait := func(c *core, yields ...time.Duration) {
		for _, y := range yields {
			c.yielded(y)
		}
		c.came()
	}
	t.Run("alone", func(t *testing.T) {
		var c core
		wait(&c)
		wait(&c, toNobody, toNobody)
		assert.False(t, c.polite())
	})
	t.Run("slow calls", func(t *testing.T) {
		var c core
		wait(&c, 1500*time.Nanosecond)
		assert.False(t, c.polite())
	})
	t.Run("another program", func(t *testing.T) {
		var c core
		wait(&c, toAProgram)
		assert.False(t, c.polite())
	})
	t.Run("a process that ran before, and did not send what came", func(t *testing.T) {
		var c core
		wait(&c, toAProcess, toNobody)
		wait(&c)
		assert.False(t, c.polite())
	})
	t.Run("met, and apart again", func(t *testing.T) {
		var c core
		wait(&c, toAProcess)
		for range apart - 1 {
			wait(&c)
		}
		assert.True(t, c.polite())
		wait(&c, toAProcess)
		for range apart - 1 {
			wait(&c, toNobody)
		}
		assert.True(t, c.polite(), "counts from the last time")
		wait(&c)
		assert.False(t, c.polite())
		wait(&c, toAProcess)
		assert.True(t, c.polite())
	})
	t.Run("met, and another program comes", func(t *testing.T) {
		var c core
		wait(&c, toAProcess)
		wait(&c, toAProgram)
		assert.False(t, c.polite())
	})
	t.Run("crowded", func(t *testing.T) {
		c := core{crowded: true}
		for range 2 * apart {
			wait(&c)
		}
		assert.True(t, c.polite())
	})
}
