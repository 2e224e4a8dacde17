package main

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/mpicx/go-mpicx/internal/lab/plots"
)

// panels are plots of curves, side by side.
type panels []*panel

// A panel has some curves over the same values.
type panel struct {
	title, label, unit string
	logX, logY         bool
	most               float64 // of y; 0: the largest value, and room for the legend
	x                  []float64
	tick               func(float64) string // the label of each x; nil: ticks are chosen automatically
	curves             []*curve
}

// A curve has a point for each value, with its deviation.
type curve struct {
	name         string
	y, deviation []float64
}

// add adds the next point of the named curve.
func (p *panel) add(name string, y, deviation float64) {
	for _, c := range p.curves {
		if c.name == name {
			c.y, c.deviation = append(c.y, y), append(c.deviation, deviation)
			return
		}
	}
	p.curves = append(p.curves, &curve{name, []float64{y}, []float64{deviation}})
}

func (ps panels) plots() (all []*plot.Plot, err error) {
	for _, p := range ps {
		drawn, err := p.plot()
		if err != nil {
			return nil, err
		}
		all = append(all, drawn)
	}
	return all, nil
}

func (p *panel) plot() (*plot.Plot, error) {
	drawn := plots.New(p.title, p.label, p.unit)
	if p.logX {
		drawn.X.Scale = plot.LogScale{}
	}
	if p.tick != nil {
		drawn.X.Tick.Marker = plots.At(p.tick, p.x...)
	}
	if p.logY {
		drawn.Y.Scale, drawn.Y.Tick.Marker = plot.LogScale{}, plots.Log(plots.Number)
	} else {
		drawn.Y.Min = 0
	}
	most := 0.0
	for i, c := range p.curves {
		line, dots, err := plots.Curve(c.points(p), plots.Looks[i%len(plots.Looks)])
		if err != nil {
			return nil, err
		}
		bars, err := plotter.NewYErrorBars(c.bars(p))
		if err != nil {
			return nil, err
		}
		bars.Color = line.Color
		drawn.Add(line, dots, bars)
		drawn.Legend.Add(c.name, line, dots)
		for k, y := range c.y {
			most = max(most, y+c.deviation[k])
		}
	}
	switch {
	case p.most > 0:
		drawn.Y.Max = p.most
	case p.logY:
		drawn.Y.Max = 10 * most
	default:
		drawn.Y.Max = 1.4 * most
	}
	return drawn, nil
}

func (c *curve) points(p *panel) plotter.XYs {
	points := make(plotter.XYs, len(c.y))
	for k, y := range c.y {
		points[k] = plotter.XY{X: p.x[k], Y: y}
	}
	return points
}

// errorBars are points with error bars, for plotters.
type errorBars struct {
	plotter.XYs
	plotter.YErrors
}

func (c *curve) bars(p *panel) errorBars {
	errors := make(plotter.YErrors, len(c.y))
	for k, d := range c.deviation {
		errors[k].Low, errors[k].High = min(d, 0.99*c.y[k]), d
	}
	return errorBars{c.points(p), errors}
}
