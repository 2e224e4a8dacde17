package main

import "slices"

// shrink looks for smaller programs that fail in the same way, until it finds no more. A program
// fails if one of several runs fails: events at the same fake time have no order.
func shrink(p *program, fails func(*program) bool) *program {
	for {
		smaller := false
		for _, q := range candidates(p) {
			if q.size() < p.size() && fails(q) {
				p, smaller = q, true
				break
			}
		}
		if !smaller {
			return p
		}
	}
}

// candidates returns programs that are somewhat smaller, the smallest first.
func candidates(p *program) []*program {
	var all []*program
	add := func(change func(*program)) {
		q := p.clone()
		change(q)
		all = append(all, q)
	}
	n := count(p.body)
	for i := range n { // remove a step
		add(func(q *program) { q.body = edit(q.body, i, func(*step) []*step { return nil }) })
	}
	for i := range n { // replace a step by its body
		if s := nth(p.body, i); s.kind == doScope && !s.catch && !p.returns && !(p.several && s.how != guard) || s.kind == doRepair && !p.returns {
			add(func(q *program) { q.body = edit(q.body, i, func(s *step) []*step { return s.body }) })
		}
	}
	if p.ranks > 2 {
		add(func(q *program) { q.ranks-- })
	}
	if p.spares > 0 {
		add(func(q *program) { q.spares-- })
	}
	if p.net != 0 {
		add(func(q *program) { q.net = 0 })
	}
	if p.returns {
		add(func(q *program) { q.returns = false })
	}
	if p.plan != "" {
		add(func(q *program) { q.plan = "" })
	}
	for i := range n {
		change := func(f func(*step)) {
			add(func(q *program) { q.body = edit(q.body, i, func(s *step) []*step { f(s); return []*step{s} }) })
		}
		s := nth(p.body, i)
		if s.delay != nil {
			change(func(s *step) { s.delay = nil })
			for r, d := range s.delay {
				if d > 0 {
					change(func(s *step) { s.delay[r] = 0 })
				}
			}
		}
		if s.repeat > 1 {
			change(func(s *step) { s.repeat-- })
		}
		if s.close {
			change(func(s *step) { s.close = false })
		}
		if s.outside {
			change(func(s *step) { s.outside = false })
		}
		if s.defers > 0 {
			change(func(s *step) { s.defers = 0 })
		}
		if s.seed != 0 {
			change(func(s *step) { s.seed = 0 })
		}
		for k := range s.crew {
			change(func(s *step) { s.crew = slices.Delete(s.crew, k, k+1) })
		}
		if s.stops && !slices.Contains(s.crew, crewTry) {
			change(func(s *step) { s.stops = false })
		}
		if s.replace {
			change(func(s *step) { s.replace = false })
		}
		for r := range p.ranks + p.spares {
			if s.has(r) && (s.ranks&(s.ranks-1) != 0 || s.kind == doDerive || s.kind == doClose) {
				change(func(s *step) { s.ranks &^= 1 << r })
			}
		}
	}
	return all
}

func count(steps []*step) int {
	n := 0
	for _, s := range steps {
		n += 1 + count(s.body) + count(s.afterRepair)
	}
	return n
}

// nth returns the step with the given number in the order of the text.
func nth(steps []*step, n int) (found *step) {
	edit(steps, n, func(s *step) []*step { found = s; return []*step{s} })
	return found
}

// edit replaces the nth step.
func edit(steps []*step, n int, f func(*step) []*step) []*step {
	var walk func([]*step) []*step
	walk = func(steps []*step) []*step {
		var all []*step
		for _, s := range steps {
			mine := n == 0
			n--
			if mine {
				all = append(all, f(s)...)
				continue
			}
			s.body = walk(s.body)
			s.afterRepair = walk(s.afterRepair)
			all = append(all, s)
		}
		return all
	}
	return walk(steps)
}
