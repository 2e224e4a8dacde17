package fault

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// countsOf returns the counts of a rank; nil: it was not wrapped.
func (p *Plan) countsOf(rank int) map[moment]int {
	p.mu.Lock()
	v := p.victims[rank]
	p.mu.Unlock()
	if v == nil {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return maps.Clone(v.counts)
}

// Operations returns how many operations a rank has begun. It is 0 for a rank that was not wrapped.
func (p *Plan) Operations(rank int) int { return p.countsOf(rank)[moment{kind: operation}] }

// Counts says which moments a rank has passed: how many operations it has begun, in which steps of
// which collectives, and how many messages of which protocols it has sent. It is empty for a rank
// that was not wrapped.
func (p *Plan) Counts(rank int) string {
	counts := p.countsOf(rank)
	if counts == nil {
		return ""
	}
	texts := []string{quantity(counts[moment{kind: operation}], "operation")}
	steps := make(map[string][]string)
	passed := slices.SortedFunc(maps.Keys(counts), func(a, b moment) int { return a.n - b.n })
	for _, m := range passed {
		if m.kind == step && m.n > 0 {
			steps[m.name] = append(steps[m.name], fmt.Sprint(m.n))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(steps)) {
		calls := quantity(counts[moment{kind: step, name: name}], "call")
		texts = append(texts, fmt.Sprintf("%s of %s with step %s", calls, name, strings.Join(steps[name], ", ")))
	}
	for _, name := range Protocols {
		if n := counts[moment{kind: message, name: name}]; n > 0 {
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
