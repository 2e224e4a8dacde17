package main

import (
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/mpicx/go-mpicx/internal/lab/plots"
)

// bars is Figure 4 of paper 002: how the time of runs is spent.
type bars struct {
	title string
	names []string
	parts [][]float64 // seconds, by part and bar
}

// addBar adds a bar: the fastest of several runs, which other programs have disturbed least.
func (f figures) addBar(j *lanczosJob, name string, runs []*lanczosRun) {
	if f == nil {
		return
	}
	b, ok := f[j.figure].(*bars)
	if !ok {
		b = &bars{title: j.name, parts: make([][]float64, len(lanczosParts))}
		f[j.figure] = b
	}
	b.names = append(b.names, name)
	for i, p := range fastest(runs).parts() {
		b.parts[i] = append(b.parts[i], p)
	}
}

// barLooks are the colours of the parts.
var barLooks = []plots.Swatch{{Color: plots.SkyBlue}, {Color: plots.Black}, {Color: plots.Vermillion}, {Color: plots.Yellow}, {Color: plots.Green}, {Color: plots.Orange}}

// plots returns a panel of whole runs, and one of the parts that are too short to be seen there.
func (b *bars) plots() ([]*plot.Plot, error) {
	whole, err := b.panel("Lanczos, 3,500 iterations: "+b.title, "time, s", 1, 0, 1, 2, 3, 4, 5)
	if err != nil {
		return nil, err
	}
	short, err := b.panel("the same without computing and redone work", "time, ms", 1e3, 1, 2, 3, 4)
	return []*plot.Plot{whole, short}, err
}

// panel stacks some of the parts.
func (b *bars) panel(title, unit string, scale float64, which ...int) (*plot.Plot, error) {
	p := plots.New(title, "checkpoints and pings; failures, with both", unit)
	p.Y.Min, p.Legend.ThumbnailWidth = 0, vg.Points(10)
	sums := make([]float64, len(b.names))
	var below *plotter.BarChart
	for _, i := range which {
		values := make(plotter.Values, len(b.names))
		for k, seconds := range b.parts[i] {
			values[k] = seconds * scale
			sums[k] += values[k]
			p.Y.Max = max(p.Y.Max, 1.6*sums[k]) // room for the legend
		}
		bar, err := plotter.NewBarChart(values, vg.Points(28))
		if err != nil {
			return nil, err
		}
		bar.Color, bar.LineStyle.Width = barLooks[i].Color, 0
		if below != nil {
			bar.StackOn(below)
		}
		below = bar
		most := p.Y.Max
		p.Add(bar)
		p.Y.Max = most
		p.Legend.Add(lanczosParts[i], barLooks[i])
	}
	var ticks plot.ConstantTicks
	for i, name := range b.names {
		if !strings.Contains(name, "\n") {
			name += "\n " // lines of text are aligned at the last
		}
		ticks = append(ticks, plot.Tick{Value: float64(i), Label: name})
	}
	p.X.Tick.Marker = ticks
	p.X.Min, p.X.Max = -0.6, float64(len(b.names))-0.4
	return p, nil
}
