package fault

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// victim returns the state of a rank; nil: it was not wrapped.
func (p *Plan) victim(rank int) *victim {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.victims[rank]
}

// Operations returns how many operations a rank has begun. It is 0 for a rank that was not wrapped.
func (p *Plan) Operations(rank int) int {
	v := p.victim(rank)
	if v == nil {
		return 0
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.counts[moment{kind: operation}]
}

// Counts describes what a rank has begun: the numbers that its moments can have. It is empty
// for a rank that was not wrapped.
func (p *Plan) Counts(rank int) string {
	if v := p.victim(rank); v != nil {
		return v.String()
	}
	return ""
}

// String says which moments the rank has passed: how many operations it has begun, in which
// steps of which collectives, and how many messages of which protocols it has sent.
func (v *victim) String() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	texts := []string{quantity(v.counts[moment{kind: operation}], "operation")}
	steps := make(map[string][]string)
	passed := slices.SortedFunc(maps.Keys(v.counts), func(a, b moment) int { return a.n - b.n })
	for _, m := range passed {
		if m.kind == step && m.n > 0 {
			steps[m.name] = append(steps[m.name], fmt.Sprint(m.n))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(steps)) {
		calls := quantity(v.counts[moment{kind: step, name: name}], "call")
		texts = append(texts, fmt.Sprintf("%s of %s with step %s", calls, name, strings.Join(steps[name], ", ")))
	}
	for _, name := range Protocols {
		if n := v.counts[moment{kind: message, name: name}]; n > 0 {
			texts = append(texts, quantity(n, name+" message"))
		}
	}
	return strings.Join(texts, "; ")
}

func quantity(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
