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

// A run is consecutive ranks.
type run struct{ first, length int }

func runsOf(ranks []int) (runs []run) {
	for _, r := range ranks {
		if n := len(runs); n > 0 && runs[n-1].first+runs[n-1].length == r {
			runs[n-1].length++
		} else {
			runs = append(runs, run{r, 1})
		}
	}
	return runs
}

// Name names ranks, which are ascending: "rank 3", "ranks 0-2, 4-7".
func Name(ranks []int) string {
	var parts []string
	for _, r := range runsOf(ranks) {
		switch r.length {
		case 1:
			parts = append(parts, fmt.Sprint(r.first))
		case 2:
			parts = append(parts, fmt.Sprint(r.first), fmt.Sprint(r.first+1))
		default:
			parts = append(parts, fmt.Sprintf("%d-%d", r.first, r.first+r.length-1))
		}
	}
	if len(ranks) == 1 {
		return "rank " + parts[0]
	}
	return "ranks " + strings.Join(parts, ", ")
}
