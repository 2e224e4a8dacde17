package mpicxtest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/inject"
)

// Run runs fn on each of the given number of ranks, as [mpicx.Run] does, and
// fails t if a rank returns an error, panics or exits.
//
// In a *testing.T it runs them in a bubble of testing/synctest: time is fake
// there, and jumps ahead when all ranks wait for it. If they wait for each other,
// for ever, Run fails t at once and prints what each is blocked in. Channels and
// timers that ranks wait for must be made inside fn; what waits for the outside,
// a file or a socket, is no deadlock. Other testing.TBs have no such bubble.
//
// With -tags mpi, in a job of mpirun's, each process runs the test, and the first
// of them are the ranks: if they are too few, Run skips t. There is no bubble, and a
// deadlock ends by the test binary's -test.timeout.
//
// When a rank calls t.FailNow, its peers get a *mpicx.CommCorruptedError.
func Run(t testing.TB, ranks int, fn func(ctx context.Context, world *mpicx.Comm) error) {
	t.Helper()
	run(t, ranks, fn, mpicx.WithRanks(ranks))
}

func run(t testing.TB, ranks int, fn func(context.Context, *mpicx.Comm) error, opts ...mpicx.Option) {
	t.Helper()
	processes := hook.Processes()
	if processes > 0 && ranks > processes {
		t.Skipf("%d ranks, and mpirun has started %d processes", ranks, processes)
	}
	tt, ok := t.(*testing.T)
	if !ok || processes > 0 {
		if err := mpicx.Run(context.Background(), fn, opts...); err != nil {
			t.Error(err)
		}
		return
	}
	j := &job{states: make([]state, max(ranks, 1))}
	defer func() {
		if j.abandoned {
			_ = recover() // the bubble's panic: that the dead have goroutines left is no error
		}
	}()
	synctest.Test(tt, func(t *testing.T) { j.inBubble(t, fn, opts) })
}

// idle is for how long, in fake time, ranks may wait for timers with no operation
// begun or ended in between. It takes no time, but for ranks that poll.
const idle = 30 * 24 * time.Hour

func (j *job) inBubble(t *testing.T, fn func(context.Context, *mpicx.Comm) error, opts []mpicx.Option) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	done := make(chan error, 1)
	go func() {
		done <- mpicx.Run(ctx, func(ctx context.Context, world *mpicx.Comm) (err error) {
			s := &j.states[world.Rank()]
			ctx, kill := context.WithCancelCause(ctx)
			defer kill(nil)
			j.set(s, func() { s.world, s.kill = world, kill })
			err = errLeft // unless fn returns
			defer j.set(s, func() {
				s.returned, s.err = true, err
				s.dead = s.dead || hook.Dead(world) // later it is, for not being there any more
			})
			return fn(ctx, world)
		}, opts...)
	}()
	for before := ""; ; {
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			j.bury()
			j.abandoned = slices.ContainsFunc(j.states, func(s state) bool { return s.dead })
			return
		case <-time.After(idle): // comes when all goroutines of the bubble wait, and for nothing sooner
		}
		synctest.Wait()
		if now := j.progress(); now != before {
			before = now
			continue
		}
		if j.bury() {
			continue
		}
		if j.onlyDeadRemain() {
			// Their goroutines wait for something other than mpicx, and nothing can end
			// them. So Run does not return; what it would is known from the others.
			for r := range j.states {
				if err := j.states[r].err; err != nil && !j.states[r].dead {
					t.Errorf("rank %d: %v", r, err)
				}
			}
			j.abandoned = true
			return
		}
		t.Errorf("deadlock: every rank waits for another\n%s", j)
		// Let the ranks go, those that wait without a context by an error of the
		// world. If living ones wait for something other than mpicx, the bubble ends
		// with a panic that shows their stacks.
		cancel(errDeadlock)
		for _, release := range []func(){func() {}, j.abort} {
			release()
			select {
			case <-done: //nolint:errcheck // the report says more
				return
			case <-time.After(idle):
			}
		}
		j.abandoned = j.onlyDeadRemain()
		return
	}
}

var (
	errDeadlock = fmt.Errorf("mpicxtest: deadlock")
	errDead     = fmt.Errorf("mpicxtest: this rank has died")
	errLeft     = fmt.Errorf("its function left by a panic or runtime.Goexit")
)

// job is what Run knows of its ranks.
type job struct {
	mu        sync.Mutex
	states    []state
	abandoned bool // there may be goroutines left, of dead ranks
}

type state struct {
	world    *mpicx.Comm
	kill     context.CancelCauseFunc
	dead     bool // before its function returned
	returned bool
	err      error // that it returned
}

// bury ends the contexts of ranks that have died since, if any has: a goroutine of
// theirs other than the one that died may wait for that.
func (j *job) bury() (some bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for r := range j.states {
		s := &j.states[r]
		if s.world != nil && !s.returned && !s.dead && hook.Dead(s.world) {
			s.dead, some = true, true
			s.kill(errDead)
		}
	}
	return some
}

// onlyDeadRemain says whether all living ranks have returned.
func (j *job) onlyDeadRemain() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return !slices.ContainsFunc(j.states, func(s state) bool { return !s.returned && !s.dead })
}

func (j *job) set(s *state, change func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	change()
}

// progress differs if a rank has done something since it was asked before.
func (j *job) progress() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	text := ""
	for _, s := range j.states {
		text += fmt.Sprintln(s.returned)
		if s.world != nil {
			text += hook.Progress(s.world)
		}
	}
	return text
}

// abort ends every Wait.
func (j *job) abort() {
	j.mu.Lock()
	states := slices.Clone(j.states)
	j.mu.Unlock()
	for _, s := range states {
		if s.world != nil {
			hook.Abort(s.world, errDeadlock)
		}
	}
}

// String says what each rank does, ranks that do the same in one paragraph.
func (j *job) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var texts []string
	ranks := make(map[string][]string)
	for r, s := range j.states {
		text := "has not begun"
		switch {
		case s.dead:
			text = "has died"
		case s.returned:
			text = "has returned"
		case s.world != nil:
			text = "waits for something other than mpicx"
			if blocked := s.world.Blocked(); len(blocked) > 0 {
				text = strings.Join(blocked, "\n    ")
			}
		}
		if !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
		ranks[text] = append(ranks[text], fmt.Sprint(r))
	}
	var b strings.Builder
	for _, text := range texts {
		fmt.Fprintf(&b, "  rank %s:\n    %s\n", strings.Join(ranks[text], ", "), text)
	}
	return b.String()
}

// Die ends the calling rank as if its process had been killed: it never returns,
// what peers wait for from this rank never comes, and no error is told to them
// but by a backend that sees processes die. The black channel does not: ranks
// that need this one hang, which Run reports.
func Die(world *mpicx.Comm) {
	inject.Die(world)
}
