package main

import (
	"image/color"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// panels are plots of curves, side by side.
type panels []*panel

// A panel has some curves over the same values.
type panel struct {
	title, label, unit string
	logX, logY         bool
	most               float64 // of y; 0: what there is, and room for the legend
	x                  []float64
	ticks              []string // at x; nil: where they fall
	curves             []*curve
}

// A curve has a point for each value, and how far it deviates.
type curve struct {
	name         string
	y, deviation []float64
}

// looks tell curves apart that lie on each other, to those who see no colours as well. The
// colours are those of Okabe and Ito.
var looks = []struct {
	color  color.Color
	shape  draw.GlyphDrawer
	dashes []vg.Length
}{
	{color.RGBA{0x00, 0x00, 0x00, 0xff}, draw.CircleGlyph{}, nil},
	{color.RGBA{0x00, 0x72, 0xb2, 0xff}, draw.TriangleGlyph{}, nil},
	{color.RGBA{0xd5, 0x5e, 0x00, 0xff}, draw.SquareGlyph{}, nil},
	{color.RGBA{0x00, 0x9e, 0x73, 0xff}, draw.CrossGlyph{}, []vg.Length{6, 3}},
	{color.RGBA{0xcc, 0x79, 0xa7, 0xff}, draw.PlusGlyph{}, []vg.Length{2, 2}},
}

// add adds the next point of the curve of that name.
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
	drawn := plot.New()
	drawn.Title.Text, drawn.X.Label.Text, drawn.Y.Label.Text = p.title, p.label, p.unit
	drawn.X.Tick.Marker, drawn.Y.Tick.Marker = thousands{plot.DefaultTicks{}}, thousands{plot.DefaultTicks{}}
	if p.logX {
		drawn.X.Scale, drawn.X.Tick.Marker = plot.LogScale{}, thousands{plot.LogTicks{Prec: -1}}
	}
	if p.ticks != nil {
		var at plot.ConstantTicks
		for i, x := range p.x {
			at = append(at, plot.Tick{Value: x, Label: p.ticks[i]})
		}
		drawn.X.Tick.Marker = at
	}
	if p.logY {
		drawn.Y.Scale, drawn.Y.Tick.Marker = plot.LogScale{}, thousands{plot.LogTicks{Prec: -1}}
	} else {
		drawn.Y.Min = 0
	}
	drawn.Add(plotter.NewGrid())
	drawn.Legend.Top, drawn.Legend.Left, drawn.Legend.YOffs = true, true, -vg.Points(4)
	drawn.Legend.XOffs, drawn.Legend.ThumbnailWidth = vg.Points(6), vg.Points(34)
	most := 0.0
	for i, c := range p.curves {
		look := looks[i%len(looks)]
		line, dots, err := plotter.NewLinePoints(c.points(p))
		if err != nil {
			return nil, err
		}
		line.Color, line.Width, line.Dashes = look.color, vg.Points(1.3), look.dashes
		dots.Color, dots.Shape, dots.Radius = look.color, look.shape, vg.Points(3)
		bars, err := plotter.NewYErrorBars(c.bars(p))
		if err != nil {
			return nil, err
		}
		bars.Color = look.color
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

// errorBars are what a plotter takes.
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

// thousands writes the labels of ticks as people do: 2,500.
type thousands struct{ plot.Ticker }

func (t thousands) Ticks(low, high float64) []plot.Tick {
	ticks := t.Ticker.Ticks(low, high)
	for i := range ticks {
		if ticks[i].Label != "" {
			ticks[i].Label = comma(ticks[i].Value)
		}
	}
	return ticks
}

func comma(v float64) string {
	text := strconv.FormatFloat(v, 'f', -1, 64)
	if v != math.Trunc(v) {
		return text
	}
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
