package main

import (
	"fmt"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// figure is the paper's Figure 2: boxplots of the duration of a propagation at
// the rank that signals, for numbers of ranks.
type figure struct {
	names []string
	boxes []samples // of mpicx and of the paper's protocol in turn
}

func (f *figure) add(n int, ours, theirs samples) {
	f.names = append(f.names, fmt.Sprintf("mpicx\n%d", n), fmt.Sprintf("paper\n%d", n))
	f.boxes = append(f.boxes, ours, theirs)
}

func (f *figure) save(name string) error {
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
			return err
		}
		box.FillColor = color.RGBA{0xf5, 0xb7, 0xb1, 0xff}
		if i%2 == 0 {
			box.FillColor = color.RGBA{0xae, 0xd6, 0xf1, 0xff}
		}
		p.Add(box)
	}
	p.NominalX(f.names...)
	return p.Save(20*vg.Centimeter, 11*vg.Centimeter, name)
}
