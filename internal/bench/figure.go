package main

import (
	"fmt"
	"image/color"
	"maps"
	"path/filepath"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// figures are what the rows that were measured have to show, by the names of
// their files. A nil map takes none.
type figures map[string]figure

type figure interface{ plot() (*plot.Plot, error) }

func (f figures) save(folder string) error {
	for _, name := range slices.Sorted(maps.Keys(f)) {
		p, err := f[name].plot()
		if err != nil {
			return err
		}
		if err := p.Save(20*vg.Centimeter, 11*vg.Centimeter, filepath.Join(folder, name+".png")); err != nil {
			return err
		}
	}
	return nil
}

// boxes is a figure like the paper's Figure 2: boxplots of the duration of a
// propagation at the rank that signals, for numbers of ranks.
type boxes struct {
	names []string
	boxes []samples // of one side and of the other in turn
}

// addBoxes adds two boxes to a figure.
func (f figures) addBoxes(name string, n int, ours string, a samples, theirs string, b samples) {
	if f == nil {
		return
	}
	x, ok := f[name].(*boxes)
	if !ok {
		x = new(boxes)
		f[name] = x
	}
	x.names = append(x.names, fmt.Sprintf("%s\n%d", ours, n), fmt.Sprintf("%s\n%d", theirs, n))
	x.boxes = append(x.boxes, a, b)
}

func (f *boxes) plot() (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = "dup + signal + every rank has its error + close"
	p.X.Label.Text = "protocol, ranks"
	p.Y.Label.Text = "ms"
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.Add(plotter.NewGrid())
	for i, s := range f.boxes {
		values := make(plotter.Values, len(s))
		for j, ns := range s {
			values[j] = ns / 1e6
		}
		box, err := plotter.NewBoxPlot(vg.Points(28), float64(i), values)
		if err != nil {
			return nil, err
		}
		box.FillColor = color.RGBA{0xf5, 0xb7, 0xb1, 0xff}
		if i%2 == 0 {
			box.FillColor = color.RGBA{0xae, 0xd6, 0xf1, 0xff}
		}
		p.Add(box)
	}
	p.NominalX(f.names...)
	return p, nil
}

// curves is a figure like Figures 3 and 4 of paper 000: what becomes of barriers
// when one is revoked, by what x says.
type curves struct {
	title, label string
	logX         bool
	x            []float64
	y            []plans
}

func (f *curves) plot() (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = f.title
	p.X.Label.Text = f.label
	p.Y.Label.Text = "µs of virtual time"
	p.Y.Min = 0
	if f.logX {
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	p.Add(plotter.NewGrid())
	p.Legend.Top, p.Legend.Left = f.logX, f.logX
	for i, curve := range []struct {
		name string
		of   func(plans) float64
	}{
		{"before the revoke", func(y plans) float64 { return float64(y.before) }},
		{"interrupted by it", func(y plans) float64 { return float64(y.revoked) }},
		{"1st after", func(y plans) float64 { return float64(y.after[0]) }},
		{"2nd after", func(y plans) float64 { return float64(y.after[1]) }},
		{"5th after", func(y plans) float64 { return float64(y.after[4]) }},
	} {
		points := make(plotter.XYs, len(f.x))
		for k := range points {
			points[k] = plotter.XY{X: f.x[k], Y: curve.of(f.y[k]) / 1e3}
		}
		line, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return nil, err
		}
		line.Color, dots.Color = plotutil.Color(i), plotutil.Color(i)
		line.Width, dots.Shape = vg.Points(1.5), draw.CircleGlyph{}
		if i == 4 { // it hides the second
			line.Dashes = plotutil.Dashes(2)
		}
		p.Add(line, dots)
		p.Legend.Add(curve.name, line, dots)
	}
	return p, nil
}
