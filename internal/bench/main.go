package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"
)

// A row is a line of the table. Measure returns ours and theirs, and what else
// there is to say.
type row struct {
	what, against string
	reach         float64 // the ratio asked for; 0: none
	atLeast       bool    // the ratio may not be smaller, rather than not larger
	measure       func(c config) result
}

type result struct {
	ours, theirs samples
	note         string
}

type config struct {
	quick bool
	plot  *figure
}

// times is how often to measure: n, or hardly at all.
func (c config) times(n int) int {
	if c.quick {
		return min(n, 2)
	}
	return n
}

func rows() []row {
	all := []row{
		{"8-byte round trip, error channel on", "unbuffered channels", 2.0, false, roundTrip},
		{"1 MiB message, bandwidth", "copy of 1 MiB", 0.8, true, large},
		{"Wait with the error channel on", "the same without", 1.05, false, waitCost},
	}
	for _, n := range []int{64, 576, 6000} {
		all = append(all, row{fmt.Sprintf("Barrier, %d ranks", n), "dissemination over channels", 1.0, false, barrier(n)})
	}
	for _, n := range []int{16, 144, 576, 6000} {
		reach := 0.0
		if n >= 576 {
			reach = 0.5
		}
		all = append(all, row{fmt.Sprintf("dup + signal + close (Figure 2), %d ranks", n), "the paper's protocol", reach, false, signal(n)})
	}
	return append(all,
		row{"fault-free Krylov solve under Try", "the same without", 1.01, false, krylov},
		row{"100,000 ranks: start, barrier, signal, end", "", 0, false, manyRanks},
	)
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == manyRanksArg {
		manyRanksChild()
		return
	}
	pattern := flag.String("rows", "", "measure only the rows whose text matches this `regexp`")
	quick := flag.Bool("quick", false, "measure hardly at all: only to see that everything runs")
	plot := flag.String("plot", "", "draw the rows of Figure 2 as boxplots into `FILE`.png")
	flag.Parse()
	match, err := regexp.Compile(*pattern)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench: -rows:", err)
		os.Exit(2)
	}
	c := config{quick: *quick}
	if *plot != "" {
		c.plot = new(figure)
	}
	fmt.Printf("%s, %s/%s, %d cores, %s\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), time.Now().Format(time.DateOnly))
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 1, ' ', 0)
	fmt.Fprintln(w, "| what\t| against\t| ours\t| theirs\t| ratio\t| asked\t| \t|")
	fmt.Fprintln(w, "| ---\t| ---\t| ---\t| ---\t| ---\t| ---\t| ---\t|")
	for _, r := range rows() {
		if match.MatchString(r.what) {
			fmt.Fprintln(os.Stderr, "measuring:", r.what)
			fmt.Fprintln(w, r.line(r.measure(c)))
		}
	}
	w.Flush()
	if c.plot != nil {
		if err := c.plot.save(*plot); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
	}
}

// line returns the row of the table.
func (r row) line(res result) string {
	cells := []string{r.what, r.against, res.ours.String(), res.theirs.String(), "", "", res.note}
	if len(res.theirs) > 0 {
		ratio := res.ours.median() / res.theirs.median()
		if r.atLeast { // bandwidths go the other way than times
			ratio = 1 / ratio
		}
		cells[4] = fmt.Sprintf("%.2f×", ratio)
		if r.reach > 0 {
			sign, reached := "≤", ratio <= r.reach
			if r.atLeast {
				sign, reached = "≥", ratio >= r.reach
			}
			cells[5] = fmt.Sprintf("%s %v×", sign, r.reach)
			if !reached {
				cells[5] += " (not reached)"
			}
		}
	}
	return "| " + strings.Join(cells, "\t| ") + "\t|"
}
