package plots

import (
	"errors"
	"image/color"
	"math"
	"os"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// margin has room for half of a label at the end of an axis.
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
		drawOne(p, tiles.At(draw.New(canvas), i, 0))
	}
	return canvas
}

// drawOne draws the legend and the label of the y-axis separately: for a logarithmic axis,
// Plot.Draw reserves room for the label in the wrong place, and puts the legend beside the data.
func drawOne(p *plot.Plot, c draw.Canvas) {
	legend, label := p.Legend, p.Y.Label
	p.Legend, p.Y.Label.Text = plot.NewLegend(), ""
	height := label.TextStyle.Height(label.Text)
	inner := draw.Crop(c, 1.2*height+label.Padding, 0, 0, 0)
	p.Draw(inner)
	data := p.DataCanvas(inner)
	legend.Draw(data)
	label.TextStyle.Rotation += math.Pi / 2
	c.FillText(label.TextStyle, vg.Point{X: c.Min.X + height, Y: data.Center().Y}, label.Text)
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
