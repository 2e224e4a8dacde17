package main

import (
	"maps"
	"path/filepath"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/mpicx/go-mpicx/internal/lab/plots"
)

// figures are the figures of the measured rows, by file name. A nil map stores none.
type figures map[string]figure

// A figure consists of one or more plots side by side.
type figure interface{ plots() ([]*plot.Plot, error) }

func (f figures) save(folder string) error {
	for _, name := range slices.Sorted(maps.Keys(f)) {
		all, err := f[name].plots()
		if err != nil {
			return err
		}
		if err := plots.Save(filepath.Join(folder, name+".png"), all...); err != nil {
			return err
		}
	}
	return nil
}

// boxes is a figure like Figure 2 of paper 004: boxplots of the duration of a propagation at the
// rank that signals, for numbers of ranks.
type boxes struct {
	names [2]string // of the sides: left and right
	ranks []int
	sides [][2]samples
}

// addBoxes adds two boxes to a figure.
func (f figures) addBoxes(name string, n int, ours string, a samples, theirs string, b samples) {
	if f == nil {
		return
	}
	x, ok := f[name].(*boxes)
	if !ok {
		x = &boxes{names: [2]string{ours, theirs}}
		f[name] = x
	}
	x.ranks, x.sides = append(x.ranks, n), append(x.sides, [2]samples{a, b})
}

func (f *boxes) plots() ([]*plot.Plot, error) {
	p := plots.New("dup + signal + every rank has its error + close", "ranks", "time, ms")
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plots.Log(plots.Number)
	p.Legend.ThumbnailWidth = vg.Points(10)
	var most float64
	var ticks plot.ConstantTicks
	for side, look := range []plots.Swatch{{Color: plots.SkyBlue}, {Color: plots.Orange}} {
		p.Legend.Add([]string{"left: ", "right: "}[side]+f.names[side], look)
		for i, both := range f.sides {
			values := make(plotter.Values, len(both[side]))
			for j, ns := range both[side] {
				values[j] = ns / 1e6
				most = max(most, values[j])
			}
			box, err := plotter.NewBoxPlot(vg.Points(30), float64(i)+0.4*(float64(side)-0.5), values)
			if err != nil {
				return nil, err
			}
			box.FillColor = look.Color
			box.GlyphStyle = draw.GlyphStyle{Color: plots.Black, Radius: vg.Points(1), Shape: draw.RingGlyph{}}
			p.Add(box)
		}
	}
	for i, n := range f.ranks {
		ticks = append(ticks, plot.Tick{Value: float64(i), Label: plots.Number(float64(n))})
	}
	p.X.Tick.Marker = ticks
	p.X.Min, p.X.Max = -0.5, float64(len(f.ranks))-0.5
	p.Y.Max = 2 * most
	return []*plot.Plot{p}, nil
}
