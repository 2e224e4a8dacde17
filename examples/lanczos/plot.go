package main

import (
	"fmt"
	"image/color"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// colors can be told apart by colour-blind people (Okabe and Ito).
var colors = []color.Color{
	color.RGBA{0x00, 0x00, 0x00, 0xff}, color.RGBA{0xd5, 0x5e, 0x00, 0xff}, color.RGBA{0x00, 0x72, 0xb2, 0xff}, color.RGBA{0xe6, 0x9f, 0x00, 0xff},
	color.RGBA{0x00, 0x9e, 0x73, 0xff}, color.RGBA{0xcc, 0x79, 0xa7, 0xff}, color.RGBA{0x56, 0xb4, 0xe9, 0xff},
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
	lo, hi := int(math.Ceil(math.Log10(least))), int(math.Floor(math.Log10(most)))
	for e := hi; e >= lo; e -= (hi-lo)/10 + 1 {
		ticks = append(ticks, plot.Tick{Value: math.Pow(10, float64(e)), Label: fmt.Sprintf("1e%+03d", e)})
	}
	return ticks
}

// plotConvergence draws the distance of the lowest eigenvalues, after each number of iterations,
// from the final ones.
func plotConvergence(name string, alpha, beta []float64, count int) error {
	p := plot.New()
	p.X.Label.Text = "iterations"
	p.Y.Label.Text = "distance from the last value, eV"
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.TickerFunc(powers)
	p.X.Tick.Marker = plot.TickerFunc(hundreds)
	p.Legend.Top, p.Legend.XOffs, p.Legend.YOffs = true, -vg.Points(6), -vg.Points(6)
	p.Add(plotter.NewGrid())
	n := len(alpha)
	p.X.Min, p.X.Max = 0, 1.03*float64(n) // room for half of a label
	end := lowest(alpha, beta, count)
	curves := make([]plotter.XYs, len(end))
	const points = 100
	for k := 1; k < points; k++ {
		j := k * n / points
		if j == 0 {
			continue
		}
		for i, e := range lowest(alpha[:j], beta[:j], count) {
			if distance := math.Abs(e - end[min(i, len(end)-1)]); i < len(end) && distance > 1e-14 {
				curves[i] = append(curves[i], plotter.XY{X: float64(j), Y: distance})
			}
		}
	}
	for i, c := range curves {
		if len(c) == 0 {
			continue
		}
		line, err := plotter.NewLine(c)
		if err != nil {
			return err
		}
		line.Color, line.Width = colors[i%len(colors)], vg.Points(1.5)
		if i%2 == 1 { // curves coincide
			line.Dashes = []vg.Length{vg.Points(6), vg.Points(3)}
		}
		p.Add(line)
		p.Legend.Add(fmt.Sprintf("%.6f eV", end[i]), line)
	}
	return p.Save(18*vg.Centimeter, 12*vg.Centimeter, name)
}
