package mpicxtest

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mpicx/go-mpicx/internal/diagnosis"
	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/internal/machine"
	"github.com/mpicx/go-mpicx/mpicx"
)

// Run calls fn at each of the given number of ranks, as [mpicx.Run] does. It fails t if a rank
// returns an error, panics or exits.
//
// In a *testing.T the ranks run in a bubble of testing/synctest. Time is fake there: it jumps
// ahead when all ranks wait for it. If all ranks wait for each other, Run fails t at once and
// prints what each of them waits for. Make channels and timers that ranks wait for inside fn. A
// wait for something outside, such as a file or a socket, is not a deadlock. Other testing.TBs
// have no bubble.
//
// In a job of mpicxrun, or with -tags mpi of mpirun, each process runs the test, and the first
// processes are the ranks. If there are too few, Run skips t. There is no bubble, and a
// deadlock ends by the test binary's -test.timeout.
//
// If no rank fails, Run fails t for what the program has left behind: a future that has ended
// with an *MPIError and that nobody has waited for, such as that of a Send to a rank which does
// not exist; and a message that nobody has received, if its communicator is no longer used or
// still exists at the end. This does not apply to futures that an error of their communicator
// has ended, or that began before one, nor to futures that a death, the end of another rank or
// Cancel has ended. It does not apply to messages from before such an error, nor to messages
// from or to the dead.
//
// When a rank calls t.FailNow, its peers get a *mpicx.CommCorruptedError.
func Run(t testing.TB, ranks int, fn func(ctx context.Context, world *mpicx.Comm) error) {
	t.Helper()
	RunWith(t, ranks, fn)
}

// RunWith is [Run] with options of mpicx.Run, such as WithSpares.
func RunWith(t testing.TB, ranks int, fn func(ctx context.Context, world *mpicx.Comm) error, opts ...mpicx.Option) {
	t.Helper()
	processes := machine.Processes()
	if processes > 0 && ranks > processes {
		t.Skipf("%d ranks, and a launcher has started %d processes", ranks, processes)
	}
	l := new(unnoticed)
	opts = append(slices.Clone(opts), mpicx.WithRanks(ranks), l.option())
	tt, ok := t.(*testing.T)
	defer l.report(t)
	if !ok || processes > 0 {
		if err := mpicx.Run(context.Background(), fn, opts...); err != nil {
			t.Error(err)
		}
		return
	}
	b := &bubble{}
	for rank := range ranks {
		b.states = append(b.states, &state{rank: rank})
	}
	defer func() {
		if b.abandoned {
			_ = recover() // the bubble panics if dead ranks have goroutines left, which is no error
		}
	}()
	synctest.Test(tt, func(t *testing.T) { b.run(t, fn, opts) })
}

// idle is how long, in fake time, ranks may wait for timers while no operation begins or ends. It
// takes no real time, unless ranks poll.
const idle = 30 * 24 * time.Hour

func (b *bubble) run(t *testing.T, fn func(context.Context, *mpicx.Comm) error, opts []mpicx.Option) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	done := make(chan error, 1)
	go func() {
		done <- mpicx.Run(ctx, func(ctx context.Context, world *mpicx.Comm) (err error) {
			ctx, kill := context.WithCancelCause(ctx)
			defer kill(nil)
			s := b.begin(world, kill)
			err = errUnwound // unless fn returns
			defer func() { b.end(s, err) }()
			return fn(ctx, world)
		}, opts...)
	}()
	for before := ""; ; {
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			b.cancelDead()
			b.abandoned = slices.ContainsFunc(b.states, func(s *state) bool { return s.dead })
			return
		case <-time.After(idle): // fires when all goroutines of the bubble wait, and none for an earlier timer
		}
		synctest.Wait()
		if now := b.progress(); now != before {
			before = now
			continue
		}
		if b.cancelDead() {
			continue
		}
		if b.onlyDeadRemain() {
			// The goroutines of dead ranks wait for something other than mpicx, and nothing can
			// end them. mpicx.Run therefore does not return. Its result is known from the others.
			for _, s := range b.states {
				if s.err != nil && !s.dead {
					t.Errorf("rank %d: %v", s.rank, s.err)
				}
			}
			b.abandoned = true
			return
		}
		t.Errorf("deadlock: every rank waits for another\n%s", b)
		// End the ranks' Waits by their contexts, and those without a context by an error of the
		// world. If living ranks wait for something other than mpicx, the bubble ends with a
		// panic that shows their stacks.
		cancel(errDeadlock)
		b.abort()
		select {
		case <-done: //nolint:errcheck // the report says more
		case <-time.After(idle):
			b.abandoned = b.onlyDeadRemain()
		}
		return
	}
}

var (
	errDeadlock = fmt.Errorf("mpicxtest: deadlock")
	errDead     = fmt.Errorf("mpicxtest: this rank has died")
	errUnwound  = fmt.Errorf("its function left by a panic or runtime.Goexit")
)

// bubble is a Run inside a bubble of testing/synctest.
type bubble struct {
	mu     sync.Mutex
	states []*state // of the ranks, including spares that were taken; protected by mu
	// abandoned says that goroutines of dead ranks may be left when the test ends. It
	// belongs to the test's goroutine.
	abandoned bool
}

type state struct {
	rank     int
	world    *mpicx.Comm
	kill     context.CancelCauseFunc
	dead     bool // it has died before its function returned
	returned bool
	err      error // the error of its function
}

// cancelDead ends the contexts of ranks that have died since the last call, because other
// goroutines of these ranks may wait for that. It says whether there are any.
func (b *bubble) cancelDead() (some bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.states {
		if s.world != nil && !s.returned && !s.dead && hook.Of(s.world).Dead() {
			s.dead, some = true, true
			s.kill(errDead)
		}
	}
	return some
}

// onlyDeadRemain says whether all living ranks have returned.
func (b *bubble) onlyDeadRemain() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !slices.ContainsFunc(b.states, func(s *state) bool { return !s.dead && !s.isOver() })
}

// isOver says whether the rank's function has returned and Run no longer waits for its pending
// collective calls.
func (s *state) isOver() bool {
	return s.returned && (hook.Of(s.world).Dead() || hook.Of(s.world).Where() == "returned")
}

// begin notes that a rank has begun.
func (b *bubble) begin(world *mpicx.Comm, kill context.CancelCauseFunc) *state {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := &state{rank: world.Rank()}
	if world.Incarnation() == 0 {
		s = b.states[s.rank]
	} else {
		b.states = append(b.states, s)
	}
	s.world, s.kill = world, kill
	return s
}

// end notes that a rank has returned.
func (b *bubble) end(s *state, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s.returned, s.err = true, err
	s.dead = s.dead || hook.Of(s.world).Dead() // now, because a rank that has returned counts as dead later
}

// progress returns a text that differs from the last one if a rank has made progress since.
func (b *bubble) progress() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	text := ""
	for _, s := range b.states {
		text += fmt.Sprintln(s.returned)
		if s.world != nil {
			text += hook.Of(s.world).Progress()
		}
	}
	return text
}

// abort ends every Wait.
func (b *bubble) abort() {
	b.mu.Lock()
	states := slices.Clone(b.states)
	b.mu.Unlock()
	for _, s := range states {
		if s.world != nil {
			hook.Of(s.world).Abort(errDeadlock)
		}
	}
}

// String says what all ranks are in, as mpicx.Comm.Diagnose does, and then which messages each
// waits for, ranks that wait for the same in one paragraph.
func (b *bubble) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var texts []string
	said := make(map[int]string)
	ranks := make(map[string][]string)
	for _, s := range b.states {
		text := "has not begun"
		switch {
		case s.dead:
			text = "has died"
		case s.returned && s.isOver():
			text = "has returned"
		case s.world != nil:
			text = "waits for something other than mpicx"
			said[s.rank] = text // replaces the text of earlier incarnations
			if blocked := hook.Of(s.world).Blocked(); len(blocked) > 0 {
				said[s.rank], text = hook.Of(s.world).Where(), strings.Join(blocked, "\n    ")
			}
		}
		if !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
		ranks[text] = append(ranks[text], s.name())
	}
	var report strings.Builder
	for _, g := range diagnosis.Grouped(said) {
		fmt.Fprintf(&report, "  %s: %s\n", diagnosis.Name(g.Ranks), g.Text)
	}
	for _, s := range b.states {
		if s.world != nil {
			for _, line := range hook.Of(s.world).Calls() {
				fmt.Fprintf(&report, "  %s\n", line)
			}
			break
		}
	}
	report.WriteString("which is\n")
	for _, text := range texts {
		fmt.Fprintf(&report, "  rank %s:\n    %s\n", strings.Join(ranks[text], ", "), text)
	}
	return report.String()
}

// name returns the rank, with its incarnation if that is not 0.
func (s *state) name() string {
	if s.world == nil || s.world.Incarnation() == 0 {
		return fmt.Sprint(s.rank)
	}
	return fmt.Sprintf("%d (incarnation %d)", s.rank, s.world.Incarnation())
}

// Die ends the calling rank as if its process had been killed. It never returns, and nothing is
// sent from the rank any more. With -tags ulfm its peers learn of the death. The black channel
// does not see it: ranks that need the dead one hang, which Run reports. (With inject.Die they
// end with an error.)
func Die(world *mpicx.Comm) {
	hook.Of(world).Die()
	runtime.Goexit()
}
