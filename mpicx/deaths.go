package mpicx

import (
	"errors"
	"runtime"
	"slices"

	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// deaths is what this rank knows of processes that have died on a communicator.
// Its mutex is held while futures are disturbed, so that each has what is true.
type deaths struct {
	failed []int // in the order in which it learned of them
	acked  int   // the first so many are acknowledged
}

var _ errchan.Survivor = (*listener)(nil)

// Died notes that a process has died.
func (l *listener) Died(rank int) {
	c := (*Comm)(l)
	if rank == c.rank {
		c.proc.die()
		return
	}
	t := &c.trouble
	t.deathsMu.Lock()
	if slices.Contains(t.deaths.failed, rank) {
		t.deathsMu.Unlock()
		return
	}
	t.deaths.failed = append(t.deaths.failed, rank)
	lose := c.disturb(ErrProcFailedPending)
	t.deathsMu.Unlock()
	c.log(levelOf(true), "died", 0, "process", rank)
	if lose {
		c.lose()
	}
}

// disturb tells the receives from AnySource that a possible sender has died, or
// with nil that they may go on. Under ErrorsPropagate it says whether there are
// any: then all ranks are to be told instead. The caller holds deathsMu.
func (c *Comm) disturb(err error) (lose bool) {
	c.t.EachPending(func(r *transport.Request) {
		if o, ok := r.Done.(disturbable); ok && r.Peer == AnySource {
			if c.propagates() {
				lose = true
			} else {
				o.disturb(err)
			}
		}
	})
	return lose
}

type disturbable interface{ disturb(error) }

// receiving is told of a receive or probe that has begun, and may have ended.
func (c *Comm) receiving(peer int) {
	if c.mitigator == nil || peer != AnySource {
		return
	}
	t := &c.trouble
	t.deathsMu.Lock()
	lose := t.deaths.acked < len(t.deaths.failed) && c.disturb(ErrProcFailedPending)
	t.deathsMu.Unlock()
	if lose {
		c.lose()
	}
}

// lose has all ranks get a *CommCorruptedError because of a death.
func (c *Comm) lose() {
	t := &c.trouble
	t.mu.Lock()
	if t.corrupted != nil || t.closed || t.revoked || c.proc.dead.Load() {
		t.mu.Unlock()
		return
	}
	t.losing = true
	if !t.noticed {
		t.noticed, t.joined = true, false
	}
	c.update()
	t.mu.Unlock()
	dead := c.Failed()
	slices.Sort(dead)
	c.mitigator.Lose(dead)
}

func (c *Comm) propagates() bool { return Errhandler(c.errhandler.Load()) == ErrorsPropagate }

// failure returns err as the error of an operation on c. If it is a death, what
// the error handler says happens first.
func (c *Comm) failure(op string, err error) error {
	if err == nil {
		return nil
	}
	if err == transport.ErrDied {
		c.proc.die() // before the program sees the error: it shall not
	}
	if err == errchan.ErrOver {
		if v := c.unreported(); v != nil {
			err = v
		}
	}
	dead, ok := errors.AsType[*transport.DeadError](err)
	if !ok {
		return mpiError(op, err)
	}
	c.mitigator.Died(dead.Rank) // which may tell of it later
	c.learn([]int{dead.Rank})
	return c.met(&ProcFailedError{Ranks: []int{dead.Rank}})
}

// met returns err, which this rank's program is to be told, or all ranks are.
func (c *Comm) met(err *ProcFailedError) error {
	if c.propagates() {
		c.lose()
	}
	return err
}

// die ends this rank: its process has died. Whatever it does on its
// communicators from now on ends its goroutine.
func (p *proc) die() {
	if p.dead.Swap(true) {
		return
	}
	p.world.bury()
	p.change()
}

func (c *Comm) bury() {
	c.trouble.mu.Lock()
	c.update()
	c.trouble.mu.Unlock()
	c.goOn()
	for _, d := range c.derived() {
		d.bury()
	}
}

// exitIfDead ends the goroutine of a rank whose process has died, as far as that
// can be done to a goroutine.
func (p *proc) exitIfDead() {
	if p.dead.Load() {
		runtime.Goexit()
	}
}

// end says that the rank's program has ended, on the world and what is derived
// from it.
func (p *proc) end(failed bool) {
	if p.world.mitigator == nil {
		return
	}
	p.world.endProgram()
	p.failed = failed
	p.leaving.Store(true)
	p.leaveWhenTold()
}

func (c *Comm) endProgram() {
	c.mitigator.Leave()
	for _, d := range c.derived() {
		d.endProgram()
	}
}

// leaveWhenTold lets the process go once the peers know what it has raised.
func (p *proc) leaveWhenTold() {
	if p.leaving.Load() && !p.world.isRaising() {
		p.world.t.Leave(p.failed)
	}
}

func (c *Comm) isRaising() bool {
	c.trouble.mu.Lock()
	raising := len(c.trouble.raised) > 0
	c.trouble.mu.Unlock()
	return raising || slices.ContainsFunc(c.derived(), (*Comm).isRaising)
}

// giveUp corrupts c and what is derived from it here, where no message moves any more
// and no peer can be told.
func (c *Comm) giveUp(cause error) {
	err := &CommCorruptedError{Failures: []Failure{newFailure(cause, 0)}, verdict: verdict{comm: c, causes: mpiError("Wait", cause)}}
	err.Failures[0].Rank = c.rank
	t := &c.trouble
	t.mu.Lock()
	first := t.corrupted == nil && !t.closed
	if first {
		t.corrupted = err
	}
	for _, r := range t.raised {
		r.verdict = t.corrupted
	}
	t.raised, t.noticed, t.joined, t.losing = nil, false, false, false
	c.update()
	t.mu.Unlock()
	if first && c.mitigator != nil {
		c.mitigator.Advance(c.generation, err, false) // its agreements end
	}
	c.goOn()
	for _, d := range c.derived() {
		d.giveUp(cause)
	}
}
