package node

import (
	"sync/atomic"
	"time"
)

// core says whether the goroutine that makes progress shares its processor core with another
// process of the job. A goroutine with a core of its own looks for packets all the time, and yields
// the core only after a while. If another process of the job needs the same core, looking only
// delays the packets of that process, so the goroutine yields at once. Processes share cores if the
// job has more processes than cores. Otherwise the system may still place two of them on one core,
// for as long as other programs keep the other cores busy. The time that a yield took shows it: see
// came. Only the goroutine that makes progress changes it.
type core struct {
	crowded bool // the job has more ranks than cores; set at the start
	// shared says that another process of the job was seen on this core. Any goroutine may read
	// it.
	shared   atomic.Bool
	alone    int           // waits since another process of the job was last seen on the core
	away     time.Duration // how long the last yield of this wait took; 0: it has not yielded
	quickest time.Duration // how long the quickest yield took, aCall at most; 0: none so far
}

const (
	briefly = 300 // moves without a packet after which a goroutine with its own core yields it
	apart   = 16  // waits without another process of the job after which the core is not shared
	// aCall is the most that a yield takes if no other process needs the core. A switch to another
	// process and back takes at least four times as long.
	aCall = 500 * time.Nanosecond
	// aSwitch is the most that a yield to another process of the job takes: that process soon
	// waits, and yields too.
	aSwitch = 100 * time.Microsecond
)

// polite says whether a goroutine that waits shall yield its core at once.
func (c *core) polite() bool { return c.crowded || c.shared.Load() }

// yield lets other processes run on this core, and measures how long that takes.
func (c *core) yield() {
	if c.crowded {
		yield()
		return
	}
	start := time.Now()
	yield()
	c.yielded(time.Since(start))
}

// yielded notes how long a yield took.
func (c *core) yielded(took time.Duration) {
	if c.quickest == 0 {
		c.quickest = aCall
	}
	c.away, c.quickest = took, min(took, c.quickest)
}

// came notes that a packet has come, which ends a wait. If the last yield took as long as a switch
// to another process of the job, that process has probably sent the packet, so the core is shared.
func (c *core) came() {
	away := c.away
	c.away = 0
	switch {
	case away > 4*c.quickest && away < aSwitch: // another process of the job had the core
		c.alone = 0
		c.shared.Store(true)
	case !c.shared.Load():
	case away >= aSwitch: // another program had the core: yielding to it takes too long
		c.shared.Store(false)
	default:
		if c.alone++; c.alone == apart {
			c.shared.Store(false)
		}
	}
}
