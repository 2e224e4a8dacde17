package main

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/mpicx/go-mpicx/mpicx"
)

var collectiveSizes = []struct {
	name  string
	bytes int
}{{"8 B", 8}, {"4 KiB", 4 << 10}, {"64 KiB", 64 << 10}, {"1 MiB", 1 << 20}}

// most is the maximum size of the buffers of all ranks of a machine together, in bytes.
const most = 1 << 30

// A grid is a table of collective operations by size, for one number of ranks.
type grid struct {
	title   string
	cells   []cell // the cells to measure
	entries map[string]string
}

// gridOf returns a grid of the cells whose names, such as "Bcast of 64 KiB, 8 ranks", match.
func gridOf(title, where string, n int, match *regexp.Regexp) *grid {
	g := &grid{title: title, entries: make(map[string]string)}
	for _, c := range collectives {
		for _, size := range collectiveSizes {
			c := cell{c, size.bytes}
			switch {
			case c.name == "Barrier" && size.bytes > 8:
			case !match.MatchString(fmt.Sprintf("%s of %s, %d %s", c.name, size.name, n, where)):
			case c.name == "Allgather" && n*n*size.bytes > most:
				g.entries[c.String()] = "too large"
			default:
				g.cells = append(g.cells, c)
			}
		}
	}
	return g
}

func (g *grid) print() {
	fmt.Printf("\n%s:\n", g.title)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 1, ' ', 0)
	fmt.Fprint(w, "|\t")
	for _, size := range collectiveSizes {
		fmt.Fprintf(w, "| %s\t", size.name)
	}
	fmt.Fprintln(w, "|\n"+strings.Repeat("| ---\t", 1+len(collectiveSizes))+"|")
	for _, c := range collectives {
		line := "| " + c.name + "\t"
		empty := true
		for _, size := range collectiveSizes {
			entry, ok := g.entries[cell{c, size.bytes}.String()]
			empty = empty && !ok
			line += "| " + entry + "\t"
		}
		if !empty {
			fmt.Fprintln(w, line+"|")
		}
	}
	w.Flush()
}

// ratio formats a ratio, in bold if it exceeds the one asked for; 0: none is asked for.
func ratio(r, asked float64) string {
	text := fmt.Sprintf("%.2f×", r)
	if asked > 0 && r > asked {
		return "**" + text + "**"
	}
	return text
}

// goroutineGrids compare collectives of goroutine ranks with a star, and with their lower bound.
func goroutineGrids(c config, match *regexp.Regexp) {
	for _, n := range []int{2, 8, 64} {
		g := gridOf(fmt.Sprintf("Collectives of %d goroutine ranks: time, against a star, against the bound, allocations of a rank's call", n), "ranks", n, match)
		if len(g.cells) == 0 {
			continue
		}
		costs := make(map[int]costs) // by bytes
		for _, cell := range g.cells {
			fmt.Fprintf(os.Stderr, "measuring: %v, %d ranks\n", cell, n)
			if _, ok := costs[cell.bytes]; !ok {
				costs[cell.bytes] = costsOf(c, n, cell.bytes/8)
			}
			ours, theirs, allocations := sideBySide(n, c.times(15), func(_ context.Context, world *mpicx.Comm) [2]call {
				return [2]call{cell.call(world), cell.star(newStar(world, cell.bytes/8))}
			})
			bound := cell.work(n, cell.bytes/8).bound(costs[cell.bytes], n)
			g.entries[cell.String()] = fmt.Sprintf("%s, %s, %.1f×, %.1f", short(ours.median()),
				ratio(ours.median()/theirs.median(), 1), ours.median()/bound, allocations)
		}
		g.print()
	}
}

// collectiveGrids compare collectives of processes with MPI's, called from C. Jobs alternate
// between ours and theirs; each job measures all cells. The results are medians.
func (m *mpi) collectiveGrids(c config, match *regexp.Regexp) {
	type side struct {
		name    string
		mpi     *mpi
		program string
	}
	sides := []side{{"MPI in C", m, m.theirs}, {"-tags mpi", m, m.ours}}
	if m.ulfm != "" {
		sides = append(sides, side{`-tags "mpi ulfm"`, m, m.ulfm})
	}
	if m.mpicxrun != "" {
		sides = append(sides, side{"mpicxrun", &mpi{run: []string{m.mpicxrun}}, m.ours})
	}
	names := make([]string, len(sides))
	for i, s := range sides {
		names[i] = s.name
	}
	for _, n := range []int{2, 4, 8} {
		g := gridOf(fmt.Sprintf("Collectives of %d processes: %s; allocations of a call", n, strings.Join(names, ", ")), "processes", n, match)
		if len(g.cells) == 0 {
			continue
		}
		fmt.Fprintf(os.Stderr, "measuring: collectives of %d processes\n", n)
		const each = 5 // samples per job
		args := []string{"collectives", strconv.Itoa(each)}
		for _, cell := range g.cells {
			args = append(args, cell.String())
		}
		medians := make([][]samples, len(sides))
		allocations := make([]float64, len(g.cells))
		for round := range c.times(9) {
			for i := range sides {
				i = (i + round) % len(sides) // the first side alternates
				columns := sides[i].mpi.job(n, sides[i].program, args...)
				if medians[i] == nil {
					medians[i] = make([]samples, len(g.cells))
				}
				for k := range g.cells {
					medians[i][k] = append(medians[i][k], columns[0][k*each:][:each].median())
					if i == 1 {
						allocations[k] = columns[1][k*each:][:each].median()
					}
				}
			}
		}
		for k, cell := range g.cells {
			native := medians[0][k].median()
			entry := short(native)
			for i := range sides[1:] {
				entry += ", " + ratio(medians[1+i][k].median()/native, asked(cell.bytes))
			}
			g.entries[cell.String()] = fmt.Sprintf("%s; %.1f", entry, allocations[k])
		}
		g.print()
	}
}

// asked is the largest accepted ratio of an operation's time to that of MPI's in C.
func asked(bytes int) float64 {
	switch {
	case bytes == 8:
		return 2
	case bytes >= 64<<10:
		return 1.3
	}
	return 0
}
