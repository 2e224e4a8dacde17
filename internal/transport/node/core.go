package node

import (
	"sync/atomic"
	"time"
)

// core is what the goroutine that makes progress knows of the core that it runs on. Who has a core alone looks
// for packets all the time, and yields only after a while. Where another process of the job needs the same
// core, looking only delays its packets: in jobs of more processes than cores, and where two processes have met
// on a core, which lasts as long as other programs keep the other cores busy. How long a yield took tells.
type core struct {
	crowded  bool          // there are more ranks than cores
	shared   atomic.Bool   // with another process of the job
	alone    int           // waits since another process was last seen here
	away     time.Duration // of the last yield of this wait
	quickest time.Duration // of all yields; 0: none so far
}

const (
	briefly = 300                    // turns before a goroutine that waits yields a core of its own
	apart   = 16                     // waits alone, after which the core is one's own again
	aCall   = 500 * time.Nanosecond  // the most that a yield to nobody takes, or a quarter of what a switch does
	aTurn   = 100 * time.Microsecond // the most that another process of the job takes: soon it waits, too
)

// polite says whether to yield at once.
func (c *core) polite() bool { return c.crowded || c.shared.Load() }

// yield lets other processes run.
func (c *core) yield() {
	if c.crowded {
		yield()
		return
	}
	start := time.Now()
	yield()
	c.yielded(time.Since(start))
}

func (c *core) yielded(took time.Duration) {
	if c.quickest == 0 {
		c.quickest = aCall
	}
	c.away, c.quickest = took, min(took, c.quickest)
}

// came ends a wait: a packet has come.
func (c *core) came() {
	away := c.away
	c.away = 0
	switch {
	case away > 4*c.quickest && away < aTurn: // from whoever has had the core since
		c.alone = 0
		c.shared.Store(true)
	case !c.shared.Load():
	case away >= aTurn: // another program had it, and lets nobody go first
		c.shared.Store(false)
	default:
		if c.alone++; c.alone == apart {
			c.shared.Store(false)
		}
	}
}
