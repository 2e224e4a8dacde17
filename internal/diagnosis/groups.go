package diagnosis

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A Group is the ranks with the same text.
type Group struct {
	Ranks []int // ascending
	Text  string
}

// Grouped returns the texts by groups, in the order of their first ranks.
func Grouped(said map[int]string) []Group {
	ranks := make(map[string][]int)
	for r, text := range said {
		ranks[text] = append(ranks[text], r)
	}
	groups := make([]Group, 0, len(ranks))
	for text, of := range ranks {
		slices.Sort(of)
		groups = append(groups, Group{of, text})
	}
	slices.SortFunc(groups, func(a, b Group) int { return cmp.Compare(a.Ranks[0], b.Ranks[0]) })
	return groups
}

// Name names ranks, which are ascending: "rank 3", "ranks 0-2, 4-7".
func Name(ranks []int) string {
	var parts []string
	for first, i := 0, 0; i < len(ranks); first = i {
		for i++; i < len(ranks) && ranks[i] == ranks[i-1]+1; i++ {
		}
		switch i - first {
		case 1:
			parts = append(parts, fmt.Sprint(ranks[first]))
		case 2:
			parts = append(parts, fmt.Sprint(ranks[first]), fmt.Sprint(ranks[first]+1))
		default:
			parts = append(parts, fmt.Sprintf("%d-%d", ranks[first], ranks[i-1]))
		}
	}
	if len(ranks) == 1 {
		return "rank " + parts[0]
	}
	return "ranks " + strings.Join(parts, ", ")
}
