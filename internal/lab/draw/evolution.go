package main

import (
	"fmt"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/mpicx/go-mpicx/internal/lab/plots"
)

// An evolution is what lanczos prints: the eigenvalues after some numbers of iterations.
type evolution struct {
	Eigenvalues []float64
	History     []struct {
		Iterations  int
		Eigenvalues []float64
	}
}

// plot draws how far the eigenvalues are from the last ones.
func (d *evolution) plot() (*plot.Plot, error) {
	p := falling("", "iterations", "distance from the last value, eV")
	for i, last := range d.Eigenvalues {
		var points plotter.XYs
		for _, h := range d.History {
			if i >= len(h.Eigenvalues) {
				continue
			}
			if distance := math.Abs(h.Eigenvalues[i] - last); distance > 1e-14 {
				points = append(points, plotter.XY{X: float64(h.Iterations), Y: distance})
			}
		}
		if len(points) == 0 {
			continue
		}
		line, dots, err := plots.Curve(points, plots.Looks[i%len(plots.Looks)])
		if err != nil {
			return nil, err
		}
		p.Add(line, dots)
		p.Legend.Add(fmt.Sprintf("%.6f eV", last), line, dots)
	}
	return p, nil
}
