package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"

	"github.com/mpicx/go-mpicx/internal/lab/plots"
)

func main() {
	if err := run(os.Args[1:], os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "draw:", err)
		os.Exit(1)
	}
}

// A document is what one of the examples prints.
type document struct {
	convergence
	evolution
}

// run is the whole program, without os.Exit.
func run(args []string, stdin io.Reader) error {
	if len(args) != 1 || filepath.Ext(args[0]) != ".png" {
		return fmt.Errorf("arguments %q, expected one name that ends in .png", args)
	}
	var d document
	if err := json.NewDecoder(stdin).Decode(&d); err != nil {
		return fmt.Errorf("standard input: %w, expected what an example prints with -json", err)
	}
	var p *plot.Plot
	var err error
	switch {
	case len(d.Runs) > 0:
		p, err = d.convergence.plot()
	case len(d.History) > 0:
		p, err = d.evolution.plot()
	default:
		err = errors.New("standard input has neither runs nor a history, expected what krylov -json prints, or lanczos -json -history 100")
	}
	if err != nil {
		return err
	}
	return plots.Save(args[0], p)
}

// falling returns a plot of what falls by powers of ten, with its legend on the upper right.
func falling(title, x, y string) *plot.Plot {
	p := plots.New(title, x, y)
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plots.Log(func(v float64) string { return fmt.Sprintf("%.0e", v) })
	p.Legend.Left, p.Legend.XOffs = false, -vg.Points(6)
	return p
}
