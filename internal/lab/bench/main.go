package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/mpicx/go-mpicx/internal/machine"
)

// A row is a line of the table. Its measure returns our samples, theirs, and a note.
type row struct {
	what, against string
	reach         float64 // the ratio asked for; 0: none
	atLeast       bool    // the ratio may not be smaller, rather than not larger
	measure       func(c config) result
	virtual       bool // simulated
}

type result struct {
	ours, theirs samples
	note         string
}

// skipped is the result of a row that takes too long.
var skipped = result{note: "not with -quick"}

type config struct {
	quick       bool
	repetitions int     // of plans in virtual time: see runs
	figures     figures // nil: none
}

// tooMany reports whether n ranks are too many to simulate.
func (c config) tooMany(n int) bool { return c.quick && n > 6000 }

// times is the number of measurements: n, or few with -quick.
func (c config) times(n int) int {
	if c.quick {
		return min(n, 2)
	}
	return n
}

func rows(p *programs) []row {
	all := []row{
		{what: "8-byte round trip, error channel on", against: "unbuffered channels", reach: 2.0, measure: roundTrip},
		{what: "1 MiB message, bandwidth", against: "copy of 1 MiB", reach: 0.8, atLeast: true, measure: large},
		{what: "Wait with the error channel on", against: "the same without", reach: 1.05, measure: waitCost},
	}
	add := func(name, against string, reach float64, measure func(n int) func(config) result, ranks ...int) {
		for _, n := range ranks {
			all = append(all, row{what: fmt.Sprintf("%s, %d ranks", name, n), against: against, reach: reach, measure: measure(n)})
		}
	}
	add("Barrier", "dissemination over channels", 1.0, barrier, 64, 576, 6000)
	const figure2 = "dup + signal + close (Figure 2)"
	add(figure2, "the paper's protocol", 0, signal, 16, 144)
	add(figure2, "the paper's protocol", 0.5, signal, 576, 6000)
	add(figure2+" under ulfm", "under the black channel", 2.0, backends, 16, 144, 576)
	add("Barrier interrupted by revoke", "dissemination, same transport", 1.0, interrupted, 576, 6000)
	add("Agree", "Allreduce of one int", 2.5, agree, 64, 576, 6000)
	add("Shrink after one death", "Agree after it", 3.0, shrink, 576)
	add("Replace after one death", "Shrink after it", 1.3, replace, 576)
	all = append(all,
		row{what: "Barrier, 2 ranks, 40 times revoked and shrunk", against: "Barrier of the world", reach: 1.1, measure: repairedOften},
		row{what: "fault-free Krylov solve under Try", against: "the same without", reach: 1.01, measure: solver},
		row{what: "product of a matrix and a vector, bandwidth", against: "triad of as many bytes", reach: 0.85, atLeast: true, measure: spmv},
		row{what: "100,000 ranks: start, barrier, signal, barrier, end", measure: manyRanks},
	)
	all = append(append(append(append(all, stopRows()...), timelineRows()...), neighborhoodRows()...), checkpointRows()...)
	all = append(append(append(all, exactRows(p)...), lanczosRows(p)...), append(sigkillRows(p), pingCostRow(p), waitCostRow(p))...)
	return append(all, virtualRows()...)
}

func virtualRows() (all []row) {
	add := func(name, against string, reach float64, measure func(n int) func(config) result) {
		for _, n := range []int{64, 576, 6000, 60_000} {
			all = append(all, row{what: fmt.Sprintf("virtual: %s, %d ranks", name, n), against: against, reach: reach, measure: measure(n), virtual: true})
		}
	}
	add("revoke by the slowest of 5 ranks (paper 000, Figure 3)", "by the fastest", 1.1, byInitiator)
	add("binomial graph, one dead rank less than half (paper 000, 3.2)", "", 0, disconnectedRow)
	add("Agree", "Allreduce of one int", 2.0, agreement)
	add("Agree, a rank dies meanwhile", "Allreduce, nobody dies", 4.0, agreementWithDeath)
	add("error under the black channel", "Allreduce of one int", 4.0, oneError)
	add("error of every rank under the black channel", "of one rank", 0, errorsAtAll)
	add("death to last survivor told", "the detector's bound", 1.0, detection)
	return append(append(all, planRows()...), pingRows()...)
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == manyRanksArg {
		manyRanksChild()
		return
	}
	if machine.Processes() > 0 {
		rankOfJob(os.Args[1:])
		return
	}
	pattern := flag.String("rows", "", "measure only the rows whose text matches this `regexp`")
	quick := flag.Bool("quick", false, "measure hardly at all: only to see that everything runs")
	plot := flag.String("plot", "", "draw the figures of these rows into the folder `DIR`")
	repetitions := flag.Int("repetitions", 20, "simulate plans in virtual time `N` times, and less often for more than 576 ranks")
	profile := flag.String("cpuprofile", "", "write a CPU profile of all that is measured to `FILE`")
	var m mpi
	run := flag.String("mpirun", "", "measure the rows of the MPI table, with jobs that this `command` starts")
	flag.StringVar(&m.ours, "ours", "", "this `program`, built with -tags mpi")
	flag.StringVar(&m.native, "native", "", "this `program`, built with -tags \"mpi ulfm native\"; none: as with -ulfm")
	flag.StringVar(&m.ulfm, "ulfm", "", "this `program`, built with -tags \"mpi ulfm\"; none: MPI has no ULFM")
	flag.StringVar(&m.lanczos, "lanczos", "", "the `program` examples/lanczos, built with -tags \"mpi ulfm\"")
	flag.StringVar(&m.theirs, "theirs", "", "the `program` c/bench.c")
	flag.StringVar(&m.python, "python", "", "the `program` python/bench.py; none: there is no mpi4py")
	flag.StringVar(&m.mpicxrun, "mpicxrun", "", "measure its rows as well: the `program`")
	flag.BoolVar(&m.hosts, "hosts", false, "measure only what is between hosts: the command of -mpirun starts each of two processes on one")
	heartbeats := flag.Bool("heartbeats", false, "measure only what heartbeats between hosts cost: -mpirun spans some; it needs -ulfm alone")
	memory := flag.String("memprofile", "", "write a profile of all allocations to `FILE`")
	flag.Parse()
	defer profiles(*profile, *memory)()
	match, err := regexp.Compile(*pattern)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench: -rows:", err)
		os.Exit(2)
	}
	c := config{quick: *quick, repetitions: *repetitions}
	if *plot != "" {
		c.figures = make(figures)
	}
	fmt.Printf("%s, %s/%s, %d cores, %s\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), time.Now().Format(time.DateOnly))
	var p programs
	defer p.remove()
	all := rows(&p)
	if *run != "" {
		m.run = strings.Fields(*run)
		m.mpich = strings.Contains(m.run[0], "mpich")
		all = m.rows()
		if *heartbeats {
			all = m.heartbeatRows()
		}
	}
	var measured, virtual []row
	for _, r := range all {
		switch {
		case !match.MatchString(r.what):
		case r.virtual:
			virtual = append(virtual, r)
		default:
			measured = append(measured, r)
		}
	}
	table(c, "", measured)
	if *run == "" {
		goroutineGrids(c, match)
	} else if !*heartbeats && !m.hosts {
		m.collectiveGrids(c, match)
	}
	table(c, fmt.Sprintf("Virtual time, %v, a CPU for each rank:\n", cray), virtual)
	if c.figures != nil && match.MatchString(planFigures) {
		drawPlans(c)
	}
	if err := c.figures.save(*plot); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// profiles starts a CPU profile. It returns a function that writes the files.
func profiles(cpu, memory string) (write func()) {
	create := func(name string) *os.File {
		f, err := os.Create(name)
		must(err)
		return f
	}
	if cpu != "" {
		must(pprof.StartCPUProfile(create(cpu)))
	}
	return func() {
		pprof.StopCPUProfile()
		if memory != "" {
			must(pprof.Lookup("allocs").WriteTo(create(memory), 0))
		}
	}
}

// table measures the rows, and prints each as soon as it is measured.
func table(c config, title string, rows []row) {
	if len(rows) == 0 {
		return
	}
	fmt.Println(title)
	fmt.Println("| what | against | ours | theirs | ratio | asked | |\n| --- | --- | --- | --- | --- | --- | --- |")
	for _, r := range rows {
		fmt.Fprintln(os.Stderr, "measuring:", r.what)
		fmt.Println(r.line(r.measure(c)))
	}
}

// line formats the row for the table.
func (r row) line(res result) string {
	cells := []string{r.what, r.against, res.ours.String(), res.theirs.String(), "", "", res.note}
	if len(res.theirs) > 0 {
		ratio := res.ours.median() / res.theirs.median()
		if r.atLeast { // for bandwidths, larger is better
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
	return "| " + strings.Join(cells, " | ") + " |"
}
