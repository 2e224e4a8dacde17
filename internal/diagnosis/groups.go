package diagnosis

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Group is the ranks with the same text.
type Group struct {
	Ranks []int // ascending
	Text  string
}

// Groups collects ranks by their texts. The groups are in the order in which the texts came.
type Groups struct {
	All []Group
	at  map[string]int
}

// Add adds a rank, which is not less than the ranks that were added with the same text before.
func (g *Groups) Add(rank int, text string) {
	at, known := g.at[text]
	if !known {
		if g.at == nil {
			g.at = make(map[string]int)
		}
		at = len(g.All)
		g.at[text], g.All = at, append(g.All, Group{Text: text})
	}
	g.All[at].Ranks = append(g.All[at].Ranks, rank)
}

// Grouped returns the texts by groups, in the order of their first ranks.
func Grouped(said map[int]string) []Group {
	var g Groups
	for _, r := range slices.Sorted(maps.Keys(said)) {
		g.Add(r, said[r])
	}
	return g.All
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
