package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// String returns the program in the form of Go, without what every program repeats: returning
// errors.
func (p *program) String() string {
	w := &writer{ranks: p.ranks + p.spares}
	if p.spares > 0 {
		w.line("// the spares that are taken are ranks %d to %d", p.ranks, w.ranks-1)
	}
	w.line("// %d ranks, backend %s%s", p.ranks, p.backend, map[bool]string{true: fmt.Sprintf(", messages of the error channel delayed (%d)", p.net)}[p.net != 0])
	if p.returns {
		w.line("world.SetErrhandler(mpicx.ErrorsReturn)")
	}
	if p.plan != "" {
		w.line("// plan %q", p.plan)
	}
	w.steps(p.body)
	return w.String()
}

type writer struct {
	strings.Builder
	ranks  int
	indent int
}

func (w *writer) line(format string, args ...any) {
	fmt.Fprintf(w, "%s%s\n", strings.Repeat("\t", w.indent), fmt.Sprintf(format, args...))
}

func (w *writer) block(begin string, steps []*step, end string) {
	w.line("%s {", begin)
	w.indent++
	w.steps(steps)
	w.indent--
	w.line("}%s", end)
}

func name(comm int) string {
	if comm == world {
		return "world"
	}
	return fmt.Sprintf("c%d", comm)
}

func (w *writer) only(s *step) string {
	var ranks []string
	for r := range w.ranks {
		if s.has(r) {
			ranks = append(ranks, fmt.Sprint(r))
		}
	}
	if len(ranks) == w.ranks {
		return ""
	}
	return "if rank is " + strings.Join(ranks, ", ") + ": "
}

func (w *writer) steps(steps []*step) {
	for _, s := range steps {
		var waits []string
		for r, d := range s.delay {
			if d > 0 && r < w.ranks {
				waits = append(waits, fmt.Sprintf("%d: %v", r, time.Duration(d)*tick))
			}
		}
		if len(waits) > 0 {
			w.line("compute(%s)", strings.Join(waits, ", "))
		}
		w.step(s)
	}
}

func (w *writer) step(s *step) {
	c := name(s.comm)
	switch s.kind {
	case doOp:
		w.line("%s(%s).Wait(%s)", opNames[s.arg], c, s.context())
	case doGroup:
		w.group(s)
	case doListen:
		w.line("%sgo Recv(%s, a tag that nobody sends).Wait(%s)%s", w.only(s), c, s.context(), map[bool]string{true: ", and then " + c + ".Signal(ctx, late)"}[s.arg == 1])
	case doWatch:
		w.line("%sgo func() { compute(%s); %s.Signal(ctx, e%d) }()", w.only(s), w.late(s, 0), c, s.id)
	case doRaise:
		w.line("%s", w.raises(s, c))
	case doLeave:
		w.line("%s%s", w.only(s), [...]string{"panic", "runtime.Goexit()", "mpicxtest.Die(world)"}[s.how])
	case doExpire:
		w.line("%sreturn Recv(%s, from the next, a tag that nobody sends).Wait(context.WithTimeout(ctx, %v))", w.only(s), c, time.Duration(s.arg)*tick)
	case doCheck:
		w.line("if ctx.Err() != nil { return ctx.Err() }")
	case doErr:
		w.line("%s_ = %s.Err()", w.only(s), c)
	case doWork:
		w.line("%sselect { case <-ctx.Done(): case <-time.After(%v): }", w.only(s), long)
	case doScope:
		if s.repeat > 1 {
			w.line("%d times:", s.repeat)
		}
		deal := ""
		if s.catch {
			deal = fmt.Sprintf(" // a PropagatedError of %s is dealt with here", c)
		}
		if s.defers > 0 {
			w.line("// if a Wait inside returns an error that all ranks have, %s", [...]string{"", "another is returned", "another is returned that wraps it", "another is thrown"}[s.defers])
		}
		if s.how == guard {
			deal = " // a panic is taken for an error here"
		}
		w.block(fmt.Sprintf("%s.%s(ctx, func(ctx)", c, [...]string{"Try", "TryAll", "Guard"}[s.how]), s.body, ")"+deal)
	case doClose:
		closes := c + ".Close(ctx)"
		if s.ranks != 0 {
			closes = w.only(s) + c + ".Release(), others " + closes
		}
		w.line("%s%s%s", [...]string{"", "begin a ring; ", "begin a barrier; ", "begin Dup; ", "begin a ring in a goroutine; ", "begin a receive of nothing; "}[s.how], closes,
			[...]string{"", "; what is begun after that fails"}[s.arg])
	case doPair:
		w.line("if rank of %s is %d modulo its size: Send to the next, which receives", c, s.id)
	case doRevoke:
		w.line("%s%s.Revoke(ctx); return e%d", w.only(s), c, s.id)
	case doStop:
		w.line("%s%s.Stop(ctx, stop%d)", w.only(s), c, s.id)
	case doStopping:
		w.line("if err := %s.Stopping(ctx); err != nil%s { return err }", c, [...]string{" && err is no StopError", ""}[s.how])
	case doRepair:
		w.block("if err := func()", s.body, "()")
		how := "Shrink"
		if s.replace {
			how = "Replace"
		}
		w.line("err == nil { _, err = %s.Agree(-1 &^ (1 << rank)).Get(ctx) }", c)
		w.block(fmt.Sprintf("if err != nil { revoke %s unless it is corrupted; %s := %s.%s().Get(ctx)", c, name(s.id), c, how), s.afterRepair, "")
	case doDerive:
		how := "Dup()"
		if s.how == split {
			how = fmt.Sprintf("Split(rank%%%d, 0)", s.arg)
		}
		w.line("%s := %s.%s.Get(ctx)", name(s.id), c, how)
		end := ""
		if s.ranks != 0 {
			w.line("%sdefer %s.Release(), in place of what comes at the end of the block%s", w.only(s), name(s.id), map[bool]string{true: ", which also recovers"}[s.absorb])
		}
		if s.close {
			end = fmt.Sprintf("; %s.Close(ctx)", name(s.id))
		}
		if s.absorb {
			end += fmt.Sprintf(" // errors of %s are dealt with here", name(s.id))
		}
		w.block("with "+name(s.id), s.body, end)
	}
}

// context names the context with which a step waits.
func (s *step) context() string {
	if s.outside {
		return "outside"
	}
	return "ctx"
}

func (w *writer) group(s *step) {
	c := name(s.comm)
	if slices.Contains(s.crew, crewChild) {
		w.line("g%d := %s.Dup().Get(ctx)", s.id, c)
	}
	if s.stops {
		w.line("g, ctx := errgroup.WithContext(ctx)")
	} else {
		w.line("g := new(errgroup.Group)")
	}
	for k, member := range s.crew {
		w.line("g.Go: compute(%s); %s", w.late(s, k), [...]string{
			fmt.Sprintf("barrier(%s).Wait(%s)", c, s.context()),
			fmt.Sprintf("ring(%s, tag of its own).Wait(%s)", c, s.context()),
			fmt.Sprintf("%s.Try(ctx, func(ctx) { ring(%s, tag of its own).Wait(ctx) })", c, c),
			fmt.Sprintf("g%d.TryAll(ctx, func(ctx) { ring(g%d).Wait(ctx)%s })", s.id, s.id, map[bool]string{true: "; " + w.only(s) + "return another error"}[s.arg == 1]),
			w.raises(s, c),
			"until the above have ended: <-ctx.Done(); return ctx.Err()",
			fmt.Sprintf("until the above have ended: Recv(%s, a tag that nobody sends).Wait(%s)", c, s.context()),
			fmt.Sprintf("until the above have ended: Recv(%s, a tag that nobody sends).Test()", c),
			fmt.Sprintf("until the above have ended: %s.Err()", c),
		}[member])
	}
	w.line("return g.Wait()")
}

// late says when a step's goroutine begins at each rank.
func (w *writer) late(s *step, k int) string {
	var all []string
	for r := range w.ranks {
		if d := s.late(r, k); d > 0 {
			all = append(all, fmt.Sprintf("%d: %v", r, d))
		}
	}
	return strings.Join(all, ", ")
}

func (w *writer) raises(s *step, c string) string {
	return w.only(s) + [...]string{
		fmt.Sprintf("return e%d", s.id),
		fmt.Sprintf("mpicx.Throw(e%d)", s.id),
		fmt.Sprintf("return %s.Signal(ctx, e%d)", c, s.id),
		fmt.Sprintf("return %s.SignalError(ctx, %d + rank)", c, 100*s.id),
	}[s.how]
}
