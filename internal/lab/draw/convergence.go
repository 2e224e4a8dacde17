package main

import (
	"fmt"
	"image/color"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/mpicx/go-mpicx/internal/lab/plots"
)

// A convergence is what krylov prints: the residuals of some runs.
type convergence struct {
	Matrix struct{ Name string }
	Method string
	Ranks  int
	Runs   []krylovRun
}

type krylovRun struct {
	Name       string
	Residuals  []float64 // 0: not finite
	Injections []struct {
		Fired bool
		Done  int `json:"iterationsDone"`
	}
	Events []struct {
		Done     int `json:"iterationsDone"`
		Recovery string
	}
}

var runColors = map[string]color.Color{
	"fault-free": color.Gray{0x80},
	"none":       plots.Vermillion,
	"restart":    plots.Blue,
	"rollback":   plots.Green,
	"replace":    plots.SkyBlue,
	"shrink":     plots.Purple,
}

// plot draws faults as crosses and recoveries as circles.
func (d *convergence) plot() (*plot.Plot, error) {
	p := falling(fmt.Sprintf("%s on %s, %d ranks", d.Method, d.Matrix.Name, d.Ranks), "iterations done", "residual |r|/|b|")
	for i, r := range d.Runs {
		if err := r.add(p, i == 1); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// add draws a run. The legend explains the cross if it is the first run with faults.
func (r *krylovRun) add(p *plot.Plot, first bool) error {
	var points plotter.XYs
	for i, v := range r.Residuals {
		if v > 0 { // the axis is logarithmic
			points = append(points, plotter.XY{X: float64(i + 1), Y: v})
		}
	}
	if len(points) == 0 {
		return nil
	}
	line, err := plotter.NewLine(points)
	if err != nil {
		return err
	}
	line.Color, line.Width = runColors[r.Name], vg.Points(1.5)
	switch r.Name { // runs coincide for long: make each visible
	case "none":
		line.Width = vg.Points(4)
	case "rollback":
		line.Dashes = []vg.Length{vg.Points(6), vg.Points(4)}
	}
	p.Add(line)
	p.Legend.Add(r.Name, line)

	var faults, recoveries plotter.XYs
	for _, inj := range r.Injections {
		if inj.Fired {
			faults = append(faults, at(points, inj.Done))
		}
	}
	for _, e := range r.Events {
		if e.Recovery != "" {
			recoveries = append(recoveries, at(points, e.Done))
		}
	}
	if err := addMarks(p, "fault", draw.CrossGlyph{}, faults, color.Black, first); err != nil {
		return err
	}
	return addMarks(p, "recovery by "+r.Name, draw.RingGlyph{}, recoveries, line.Color, true)
}

func addMarks(p *plot.Plot, name string, shape draw.GlyphDrawer, points plotter.XYs, c color.Color, explain bool) error {
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
		p.Legend.Add(name, marks)
	}
	return nil
}

// at returns the point of an iteration, or the last one before it.
func at(points plotter.XYs, iteration int) plotter.XY {
	after := slices.IndexFunc(points, func(p plotter.XY) bool { return p.X > float64(iteration) })
	if after < 0 {
		after = len(points)
	}
	return points[max(after-1, 0)]
}
