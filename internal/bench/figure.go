package main

import (
	"errors"
	"fmt"
	"image/color"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// figures are what the rows that were measured have to show, by the names of
// their files. A nil map takes none.
type figures map[string]figure

// A figure is one plot, or some side by side.
type figure interface{ plots() ([]*plot.Plot, error) }

func (f figures) save(folder string) error {
	for _, name := range slices.Sorted(maps.Keys(f)) {
		plots, err := f[name].plots()
		if err != nil {
			return err
		}
		if err := saved(plots, filepath.Join(folder, name+".png")); err != nil {
			return err
		}
	}
	return nil
}

// saved writes plots side by side to a file, with room for the last label of an axis.
func saved(plots []*plot.Plot, name string) error {
	width, height := 20*vg.Centimeter, 11*vg.Centimeter
	if len(plots) > 1 {
		width = 28 * vg.Centimeter
	}
	canvas := vgimg.PngCanvas{Canvas: vgimg.New(width, height)}
	margin := 0.6 * vg.Centimeter
	tiles := draw.Tiles{Rows: 1, Cols: len(plots), PadX: margin, PadLeft: margin / 3, PadRight: margin, PadTop: margin / 3, PadBottom: margin / 3}
	for i, c := range plot.Align([][]*plot.Plot{plots}, tiles, draw.New(canvas))[0] {
		plots[i].Draw(c)
	}
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	_, err = canvas.WriteTo(file)
	return errors.Join(err, file.Close())
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

func (f *boxes) plots() ([]*plot.Plot, error) {
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
	return []*plot.Plot{p}, nil
}
