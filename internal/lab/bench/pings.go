package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strconv"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/mpicx/go-mpicx/internal/detector"
	"github.com/mpicx/go-mpicx/internal/lab/plots"
)

// pings is mpicx.Ping with a period of 10 ms.
var pings = detector.Config{Period: 10 * time.Millisecond, Timeout: 40 * time.Millisecond, Ping: true}

// paperPings has the paper's period.
var paperPings = detector.Config{Period: 3 * time.Second, Timeout: 12 * time.Second, Ping: true}

// tableI is Table I of paper 002, in seconds: InfiniBand, one process a node, a period of 3 s.
var tableI = []struct {
	ranks           int
	scan, detection float64
}{
	{8, 0.010, 4.9}, {16, 0.018, 5.3}, {32, 0.036, 5.5}, {64, 0.067, 4.3}, {128, 0.129, 5.7}, {256, 0.255, 5.3},
}

// pingRows are Table I in virtual time, where deaths are found only by silence.
func pingRows() (all []row) {
	for _, paper := range tableI {
		reach := 0.0
		if paper.ranks == 256 {
			reach = 0.019 // 0.1 s
		}
		all = append(all, row{
			what: fmt.Sprintf("virtual: scan by pings (paper 002, Table I), %d ranks", paper.ranks), against: "the paper's", virtual: true,
			measure: func(c config) result {
				took := scans(c, paper.ranks)
				c.figures.addTableI(0, paper.ranks, took, paper.scan)
				return result{took, samples{paper.scan * 1e9}, ""}
			},
		}, row{
			what: fmt.Sprintf("virtual: death to last survivor told, by pings (paper 002, Table I), %d ranks", paper.ranks), against: "the paper's", reach: reach, virtual: true,
			measure: func(c config) result {
				took := detections(c, pings, paper.ranks)
				c.figures.addTableI(1, paper.ranks, took, paper.detection)
				return result{took, samples{paper.detection * 1e9}, fmt.Sprintf("a ping each %v, here; the paper has 3s", pings.Period)}
			},
		}, row{
			what: fmt.Sprintf("virtual: death to last survivor told, by pings as frequent as the paper's (paper 002, Table I), %d ranks", paper.ranks), against: "the paper's", virtual: true,
			measure: func(c config) result {
				took := detections(c, paperPings, paper.ranks)
				c.figures.addTableI(3, paper.ranks, took, paper.detection)
				return result{took, samples{paper.detection * 1e9}, ""}
			},
		})
	}
	return all
}

func detections(c config, pings detector.Config, n int) (took samples) {
	for seed := range c.times(100) {
		t, _ := detect(pings, n, uint64(seed))
		took = append(took, float64(t))
	}
	return took
}

// sigkillRows are Table I with processes. Other processes of the machine detect their deaths.
func sigkillRows(p *programs) (all []row) {
	for _, paper := range tableI[:4] { // two cores could do little but start more than these
		all = append(all, row{
			what: fmt.Sprintf("SIGKILL to the error at the last survivor, %d processes, with pings (paper 002, Table I)", paper.ranks), against: "the paper's",
			measure: func(c config) result {
				if c.quick && paper.ranks > 16 {
					return skipped
				}
				var took samples
				for range c.times(10) {
					run := exec.Command(p.build("mpicx/mpicxrun"), "-n", strconv.Itoa(paper.ranks), p.build("internal/lab/bench"), "recover", "8", "pings")
					took = append(took, printed(run)[0][0])
				}
				c.figures.addTableI(2, paper.ranks, took, paper.detection)
				return result{took, samples{paper.detection * 1e9}, ""}
			},
		})
	}
	const n = 4
	killed := func(holds string) func() time.Duration {
		return func() time.Duration {
			run := exec.Command(p.build("mpicx/mpicxrun"), "-n", strconv.Itoa(n), p.build("internal/lab/bench"), "recover", holds)
			return time.Duration(printed(run)[0][0])
		}
	}
	return append(all, row{
		what: fmt.Sprintf("SIGKILL of a process with 512 MiB to the error at the last survivor, %d processes", n), against: "of one with 1 MiB", reach: 1.5,
		measure: func(c config) result {
			s := inTurn(c.times(15), killed("512"), killed("1"))
			return result{s[0], s[1], ""}
		},
	})
}

// pingCostRow compares the CPU time of processes that sleep outside of the library, with pings and
// without: what pings take from a program that computes.
func pingCostRow(p *programs) row {
	const n = 4
	return row{what: "pings every 100 ms: CPU time of 4 processes that sleep", against: "without", measure: func(c config) result {
		wait := 10 * time.Second
		if c.quick {
			wait = 100 * time.Millisecond
		}
		cpu := func(args ...string) func() time.Duration {
			return func() time.Duration {
				return p.cpuTime(n, append([]string{"sleep", strconv.Itoa(int(wait.Milliseconds()))}, args...)...)
			}
		}
		s := inTurn(c.times(5), cpu("rare pings"), cpu())
		return result{s[0], s[1], fmt.Sprintf("in %v; the pings take %.2f %% of a core from each", wait, (s[0].median()-s[1].median())/float64(n*wait)*100)}
	}}
}

// waitCostRow measures the processor time of processes that wait.
func waitCostRow(p *programs) row {
	const n = 8
	return row{what: "CPU time of 8 processes, 7 of which wait for one that sleeps", against: "of one core", reach: 0.01, measure: func(c config) (r result) {
		wait := 10 * time.Second
		if c.quick {
			wait = 100 * time.Millisecond
		}
		for range c.times(5) {
			start := p.cpuTime(n, "wait", "0")
			r.ours = append(r.ours, float64(p.cpuTime(n, "wait", strconv.Itoa(int(wait.Milliseconds())))-start))
			r.theirs = append(r.theirs, float64(wait))
		}
		return r
	}}
}

// cpuTime returns the processor time of a job of n processes of this program.
func (p *programs) cpuTime(n int, args ...string) time.Duration {
	run := exec.Command(p.build("mpicx/mpicxrun"), append([]string{"-n", strconv.Itoa(n), p.build("internal/lab/bench")}, args...)...)
	must(run.Run())
	return run.ProcessState.UserTime() + run.ProcessState.SystemTime()
}

// scans measures the time from when the last of n ranks pings all others until it has all answers.
func scans(c config, n int) samples {
	w, all := watched(pings, n, rand.New(rand.NewPCG(1, 1)), 1)
	watchman := all[n-1]
	for len(watchman.scans) < c.times(100) && w.Step() {
	}
	return watchman.scans
}

// A tableFigure is Table I as curves, in seconds: of scans; of detection in virtual time, by
// processes, and in virtual time with the paper's period.
type tableFigure struct{ ours, papers [4]plotter.XYs }

// addTableI adds our median and the paper's value for one cell.
func (f figures) addTableI(what, ranks int, ours samples, papers float64) {
	if f == nil {
		return
	}
	t, ok := f["table1"].(*tableFigure)
	if !ok {
		t = new(tableFigure)
		f["table1"] = t
	}
	t.ours[what] = append(t.ours[what], plotter.XY{X: float64(ranks), Y: ours.median() / 1e9})
	t.papers[what] = append(t.papers[what], plotter.XY{X: float64(ranks), Y: papers})
}

func (t *tableFigure) plots() ([]*plot.Plot, error) {
	p := plots.New("Table I of paper 002: a dedicated rank pings all others", "ranks", "time")
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, tableITicks()
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plots.Log(plots.Seconds)
	p.Y.Min, p.Y.Max = 5e-6, 5e4 // room for the legend
	add := func(name string, points plotter.XYs, look plots.Look) error {
		if len(points) == 0 {
			return nil
		}
		line, dots, err := plots.Curve(points, look)
		if err != nil {
			return err
		}
		p.Add(line, dots)
		p.Legend.Add(name, line, dots)
		return nil
	}
	dashes := []vg.Length{7, 3}
	return []*plot.Plot{p}, errors.Join(
		add("death to all told, paper: a scan every 3 s", t.papers[1], plots.Look{Color: plots.Vermillion, Shape: draw.RingGlyph{}, Dashes: dashes}),
		add("the same here, virtual time: pings every "+plots.Seconds(pings.Period.Seconds()), t.ours[1], plots.Look{Color: plots.Vermillion, Shape: draw.CircleGlyph{}}),
		add("the same here, virtual time: pings every 3 s", t.ours[3], plots.Look{Color: plots.Orange, Shape: draw.PyramidGlyph{}}),
		add("SIGKILL to all told here, processes of one machine", t.ours[2], plots.Look{Color: plots.Black, Shape: draw.TriangleGlyph{}}),
		add("scan of all, paper", t.papers[0], plots.Look{Color: plots.Blue, Shape: draw.SquareGlyph{}, Dashes: dashes}),
		add("scan of all here, virtual time", t.ours[0], plots.Look{Color: plots.Blue, Shape: draw.BoxGlyph{}}))
}

func tableITicks() plot.Ticker {
	var ranks []float64
	for _, paper := range tableI {
		ranks = append(ranks, float64(paper.ranks))
	}
	return plots.At(plots.Number, ranks...)
}
