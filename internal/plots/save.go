package plots

import (
	"errors"
	"image/color"
	"os"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// margin is wide enough for half of a label at the end of an axis.
const margin = 0.6 * vg.Centimeter

var lightGrey = color.Gray{0xdd}

// New returns a plot with linear axes, a grid, and its legend on the upper left.
func New(title, x, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Title.Padding, p.X.Label.Padding, p.Y.Label.Padding = vg.Points(6), vg.Points(3), vg.Points(3)
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.TickerFunc(Linear), plot.TickerFunc(Linear)
	p.Legend.Top, p.Legend.Left, p.Legend.Padding = true, true, vg.Points(2)
	p.Legend.XOffs, p.Legend.YOffs, p.Legend.ThumbnailWidth = vg.Points(6), -vg.Points(4), vg.Points(34)
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = lightGrey, lightGrey
	p.Add(grid)
	return p
}

// Draw draws plots side by side.
func Draw(plots ...*plot.Plot) *vgimg.Canvas {
	width, height := 20*vg.Centimeter, 11*vg.Centimeter
	if len(plots) > 1 {
		width = 28 * vg.Centimeter
	}
	canvas := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(144))
	tiles := draw.Tiles{Rows: 1, Cols: len(plots), PadX: margin, PadLeft: margin / 3, PadRight: margin, PadTop: margin / 3, PadBottom: margin / 3}
	for i, p := range plots {
		c := tiles.At(draw.New(canvas), i, 0)
		legend := p.Legend
		p.Legend = plot.NewLegend()
		p.Draw(c)
		p.Legend = legend
		legend.Draw(p.DataCanvas(c)) // Plot.Draw puts it beside that if an axis is padded
	}
	return canvas
}

// Save draws plots side by side into a file.
func Save(name string, plots ...*plot.Plot) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	_, err = vgimg.PngCanvas{Canvas: Draw(plots...)}.WriteTo(file)
	return errors.Join(err, file.Close())
}
