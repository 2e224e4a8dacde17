package main

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mpicx/go-mpicx/internal/fault"
	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/mpicx"
)

// tick is the unit of fake time. It is so long that ranks that wait have their calls compared (M2),
// often while others are late: this must not disturb a program.
const tick = 30 * time.Millisecond

// idle is longer than any program computes.
const idle = 24 * time.Hour

// play runs a program once and returns the history, which includes the failures.
func play(t *testing.T, p *program) (h *history) {
	h = newHistory(p.ranks + p.spares)
	h.planned, h.several, h.returns = p.plan != "", p.several, p.returns
	h.byHand = p.returns && p.backend == "ulfm"
	defer func() {
		if v := recover(); v != nil {
			text := fmt.Sprint(v)
			if strings.HasPrefix(text, "deadlock: ") {
				h.failf("leak", "%s", text)
			} else {
				h.failf("panic", "%v\n%s", v, debug.Stack())
			}
		}
		if len(h.failures) == 0 {
			h.check()
		}
	}()
	synctest.Test(t, func(*testing.T) { inBubble(p, h) })
	return h
}

func inBubble(p *program, h *history) {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	options := []mpicx.Option{mpicx.WithRanks(p.ranks), hook.Backend[mpicx.Option](p.backend)}
	plan, err := fault.Parse(p.plan)
	if err != nil {
		panic(err)
	}
	options = append(options, hook.Transport[mpicx.Option](func(c transport.Comm) transport.Comm {
		c = plan.Wrap(c)
		if p.net != 0 {
			c = network(p.net)(c)
		}
		return c
	}))
	if p.spares > 0 {
		options = append(options, mpicx.WithSpares(p.spares))
	}
	ranks := make([]*rank, p.ranks+p.spares)
	everybody := make([]int, p.ranks)
	for i := range everybody {
		everybody[i] = i
	}
	own := make([]error, len(ranks))
	done := make(chan error, 1)
	hung := false
	defer func() {
		if hung { // later failures are consequences of the release
			h.failures = h.failures[:1]
		}
	}()
	whole := ctx
	go func() {
		done <- mpicx.Run(ctx, func(ctx context.Context, w *mpicx.Comm) error {
			r := &rank{history: h, id: w.Rank(), mortal: p.backend == "ulfm", byHand: h.byHand, released: whole}
			r.world = &inst{Comm: w, name: "world", members: everybody, taken: make([]int, p.ranks)}
			if w.Incarnation() > 0 {
				r.id = p.ranks + h.taken()
				r.world = &inst{Comm: w}
			} else {
				r.insts = []*inst{r.world}
			}
			ranks[r.id] = r
			own[r.id] = mpicx.ErrGoexit
			own[r.id] = r.run(ctx, p)
			return own[r.id]
		}, options...)
	}()
	select {
	case err := <-done:
		for _, r := range plan.Killed() {
			h.died(r)
		}
		h.ended(p, own, err)
	case <-time.After(idle):
		synctest.Wait()
		hung = len(h.failures) == 0
		h.failf("hang", "every rank waits for another\n%s", blocked(ranks))
		cancel(fmt.Errorf("released"))
		for _, release := range []func(){func() {}, func() { abort(ranks) }} {
			release()
			select {
			case <-done: //nolint:errcheck // it is over, however
				return
			case <-time.After(idle):
			}
		}
		h.failf("hang", "and some wait in spite of an error")
		return
	}
	time.Sleep(1000 * tick) // messages under way are delivered
	for _, r := range ranks {
		if r == nil || h.dead[r.id] {
			continue
		}
		for _, late := range r.late {
			late()
		}
	}
}

func abort(ranks []*rank) {
	for _, r := range ranks {
		if r != nil {
			hook.Of(r.world.Comm).Abort(fmt.Errorf("released"))
		}
	}
}

// blocked says in which operation each rank is blocked.
func blocked(ranks []*rank) string {
	var b strings.Builder
	for i, r := range ranks {
		fmt.Fprintf(&b, "  rank %d: ", i)
		if r == nil {
			fmt.Fprintln(&b, "has not begun")
			continue
		}
		lines := r.world.Blocked()
		if len(lines) == 0 {
			lines = []string{"nothing"}
		}
		fmt.Fprintln(&b, strings.Join(lines, "\n          "))
	}
	return b.String()
}

// ended checks the error that Run returns.
func (h *history) ended(p *program, own []error, err error) {
	failed := 0
	for r, e := range own {
		if e == nil || h.dead[r] {
			continue
		}
		failed++
		if err == nil {
			h.failf("Run", "returns nil, and rank %d has returned %v", r, e)
		} else if !strings.Contains(err.Error(), e.Error()) && !(hasType[*mpicx.StopError](e) && hasType[*mpicx.StopError](err)) {
			h.failf("Run", "returns %q, in which rank %d's %q is missing", err, r, e)
		}
	}
	if failed == 0 && err != nil {
		h.failf("Run", "returns %q, and no rank has returned an error", err)
	}
}

// String lists what each rank was told.
func (h *history) String() string {
	var b strings.Builder
	for r, events := range h.events {
		fmt.Fprintf(&b, "  rank %d:\n", r)
		type line struct {
			at   int64
			text string
		}
		var lines []line
		for _, v := range events {
			text := "nil"
			if v.err != nil {
				text = v.err.Error()
			}
			lines = append(lines, line{v.begin, fmt.Sprintf("%3d-%3d %s: %s", v.begin, v.end, v.what, text)})
		}
		for _, all := range h.raised {
			for _, a := range all {
				if a.world == r {
					lines = append(lines, line{a.at, fmt.Sprintf("%3d     raises on %s: %s", a.at, a.comm, a.what.message)})
				}
			}
		}
		slices.SortFunc(lines, func(a, b line) int { return int(a.at - b.at) })
		for _, l := range lines {
			fmt.Fprintln(&b, "    "+l.text)
		}
	}
	return b.String()
}
