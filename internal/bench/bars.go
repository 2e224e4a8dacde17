package main

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// bars is Figure 4 of paper 002: where the time of runs goes.
type bars struct {
	title string
	names []string
	parts []plotter.Values // of each part, by bar
}

// addBar adds a bar: the fastest of some runs, which others on the machine have disturbed least.
func (f figures) addBar(j *lanczosJob, name string, runs []*lanczosRun) {
	if f == nil {
		return
	}
	b, ok := f[j.figure].(*bars)
	if !ok {
		b = &bars{title: "Lanczos on graphene, 3,500 iterations, a checkpoint every 500: " + j.name, parts: make([]plotter.Values, len(lanczosParts))}
		f[j.figure] = b
	}
	b.names = append(b.names, name)
	for i, p := range fastest(runs).parts() {
		b.parts[i] = append(b.parts[i], p)
	}
}

func (b *bars) plots() ([]*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = b.title
	p.Y.Label.Text = "s"
	p.Y.Min = 0
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.ThumbnailWidth = vg.Points(10)
	var below *plotter.BarChart
	most := 0.0
	for i, values := range b.parts {
		bar, err := plotter.NewBarChart(values, vg.Points(34))
		if err != nil {
			return nil, err
		}
		bar.Color, bar.LineStyle.Width = plotutil.Color(i), 0
		if below != nil {
			bar.StackOn(below)
		}
		below = bar
		p.Add(bar)
		p.Legend.Add(lanczosParts[i], bar)
	}
	for i := range b.names {
		sum := 0.0
		for _, values := range b.parts {
			sum += values[i]
		}
		most = max(most, sum)
	}
	p.Y.Max = 1.6 * most // room for the legend
	p.NominalX(b.names...)
	p.X.Min, p.X.Max = -0.5, float64(len(b.names))-0.5
	return []*plot.Plot{p}, nil
}
