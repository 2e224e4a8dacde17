package main

import (
	"fmt"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// plotConvergence draws how far the lowest eigenvalues after each number of iterations were
// from those at the end.
func plotConvergence(name string, alpha, beta []float64, count int) error {
	p := plot.New()
	p.X.Label.Text = "iterations"
	p.Y.Label.Text = "distance from the last value, eV"
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.Legend.Top = true
	p.Add(plotter.NewGrid())
	n := len(alpha)
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
		line.Color, line.Width = plotutil.Color(i), vg.Points(1.5)
		p.Add(line)
		p.Legend.Add(fmt.Sprintf("%.6f eV", end[i]), line)
	}
	return p.Save(18*vg.Centimeter, 12*vg.Centimeter, name)
}
