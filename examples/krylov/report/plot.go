package report

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// CheckPlot checks that a plot can be written to a file of this name.
func CheckPlot(name string) error {
	if name == "" || slices.Contains([]string{".png", ".svg", ".pdf"}, filepath.Ext(name)) {
		return nil
	}
	return fmt.Errorf("-plot %q, expected a name that ends in .png, .svg or .pdf", name)
}

// runColors can be told apart by colour-blind people (Okabe and Ito).
var runColors = map[string]color.Color{
	"fault-free": color.RGBA{0x80, 0x80, 0x80, 0xff},
	"none":       color.RGBA{0xd5, 0x5e, 0x00, 0xff},
	"restart":    color.RGBA{0x00, 0x72, 0xb2, 0xff},
	"rollback":   color.RGBA{0x00, 0x9e, 0x73, 0xff},
	"replace":    color.RGBA{0x56, 0xb4, 0xe9, 0xff},
	"shrink":     color.RGBA{0xcc, 0x79, 0xa7, 0xff},
}

// Plot draws the residuals of all runs, with faults as crosses and
// recoveries as circles.
func Plot(cfg *Settings, outcomes []*Outcome) error {
	name := cfg.Plot
	p := plot.New()
	p.Title.Text = fmt.Sprintf("%s on %s, %d ranks", cfg.Method, cfg.Matrix, cfg.Ranks)
	p.X.Label.Text = "iterations done"
	p.Y.Label.Text = "residual |r|/|b|"
	p.Y.Scale = plot.LogScale{}
	p.Y.Tick.Marker = plot.TickerFunc(powers)
	p.X.Tick.Marker = plot.TickerFunc(hundreds)
	p.Add(plotter.NewGrid())

	legend := plot.NewLegend()
	legend.Top = true
	legend.Padding = vg.Points(2)
	for i, o := range outcomes {
		if err := addRun(p, &legend, o, i); err != nil {
			return err
		}
	}

	canvas, err := draw.NewFormattedCanvas(18*vg.Centimeter, 12*vg.Centimeter, filepath.Ext(name)[1:])
	if err != nil {
		return err
	}
	const margin = 12 // half of a label at the end of an axis
	whole := draw.Crop(draw.New(canvas), vg.Points(4), -vg.Points(margin), vg.Points(4), -vg.Points(4))
	p.Draw(whole)
	legend.Draw(draw.Crop(p.DataCanvas(whole), 0, -vg.Points(6), 0, -vg.Points(6)))
	return writeFile(name, canvas)
}

func writeFile(name string, content io.WriterTo) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if _, err := content.WriteTo(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// hundreds returns labelled ticks at multiples of 1, 2 or 5 times a power of ten.
func hundreds(least, most float64) (ticks []plot.Tick) {
	step := math.Pow(10, math.Floor(math.Log10(most-least)))
	for _, divided := range []float64{1, 2, 5} {
		if (most-least)*divided/step >= 4 {
			step /= divided
			break
		}
	}
	for v := step * math.Ceil(least/step); v <= most; v += step {
		text := strconv.FormatFloat(v, 'f', -1, 64)
		if v >= 1000 && v < 1e6 {
			text = text[:len(text)-3] + "," + text[len(text)-3:]
		}
		ticks = append(ticks, plot.Tick{Value: v, Label: text})
	}
	return ticks
}

// powers returns labelled ticks at powers of ten, as many as fit.
func powers(least, most float64) (ticks []plot.Tick) {
	lo, hi := int(math.Ceil(math.Log10(least)-1e-9)), int(math.Floor(math.Log10(most)+1e-9))
	for e := hi; e >= lo; e -= (hi-lo)/10 + 1 {
		ticks = append(ticks, plot.Tick{Value: math.Pow(10, float64(e)), Label: fmt.Sprintf("1e%+03d", e)})
	}
	return ticks
}

func addRun(p *plot.Plot, legend *plot.Legend, o *Outcome, order int) error {
	points := drawable(o.Residuals)
	if len(points) == 0 {
		return nil
	}
	line, err := plotter.NewLine(points)
	if err != nil {
		return err
	}
	line.Color = runColors[o.Name]
	line.Width = vg.Points(1.5)
	switch o.Name { // runs coincide for long: make each visible
	case None:
		line.Width = vg.Points(4)
	case "rollback":
		line.Dashes = []vg.Length{vg.Points(6), vg.Points(4)}
	}
	p.Add(line)
	legend.Add(o.Name, line)

	var faults, recoveries plotter.XYs
	for _, inj := range o.Injections {
		if inj.Fired {
			faults = append(faults, at(points, inj.Done))
		}
	}
	for _, e := range o.Events {
		if e.Recovery != "" {
			recoveries = append(recoveries, at(points, e.Iteration))
		}
	}
	if err := addMarks(p, legend, "fault", draw.CrossGlyph{}, faults, color.Black, order == 1); err != nil {
		return err
	}
	return addMarks(p, legend, "recovery by "+o.Name, draw.RingGlyph{}, recoveries, line.Color, true)
}

func addMarks(p *plot.Plot, legend *plot.Legend, name string, shape draw.GlyphDrawer, points plotter.XYs, c color.Color, explain bool) error {
	if len(points) == 0 {
		return nil
	}
	marks, err := plotter.NewScatter(points)
	if err != nil {
		return err
	}
	marks.Shape, marks.Radius, marks.Color = shape, vg.Points(5), c
	p.Add(marks)
	if explain {
		legend.Add(name, marks)
	}
	return nil
}

// drawable returns the residuals that a logarithmic axis can show.
func drawable(residuals []Float) plotter.XYs {
	var points plotter.XYs
	for i, r := range residuals {
		if r := float64(r); r > 0 && !math.IsInf(r, 0) {
			points = append(points, plotter.XY{X: float64(i + 1), Y: r})
		}
	}
	return points
}

// at returns the point of an iteration, or the last one before it.
func at(points plotter.XYs, iteration int) plotter.XY {
	best := points[0]
	for _, p := range points {
		if p.X > float64(iteration) {
			break
		}
		best = p
	}
	return best
}
