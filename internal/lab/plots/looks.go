package plots

import (
	"image/color"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// The colours of Okabe and Ito, which colour-blind people can tell apart.
var (
	Black      = color.RGBA{0x00, 0x00, 0x00, 0xff}
	Orange     = color.RGBA{0xe6, 0x9f, 0x00, 0xff}
	SkyBlue    = color.RGBA{0x56, 0xb4, 0xe9, 0xff}
	Green      = color.RGBA{0x00, 0x9e, 0x73, 0xff}
	Yellow     = color.RGBA{0xf0, 0xe4, 0x42, 0xff}
	Blue       = color.RGBA{0x00, 0x72, 0xb2, 0xff}
	Vermillion = color.RGBA{0xd5, 0x5e, 0x00, 0xff}
	Purple     = color.RGBA{0xcc, 0x79, 0xa7, 0xff}
)

// A Look is the look of a curve.
type Look struct {
	Color  color.Color
	Shape  draw.GlyphDrawer // of its points
	Dashes []vg.Length      // nil: the line is solid
}

// Looks differ in colour, shape and dashes, so that curves that coincide can be told apart.
var Looks = []Look{
	{Black, draw.CircleGlyph{}, nil},
	{Blue, draw.TriangleGlyph{}, nil},
	{Vermillion, draw.SquareGlyph{}, nil},
	{Green, draw.CrossGlyph{}, []vg.Length{7, 3}},
	{Purple, draw.RingGlyph{}, []vg.Length{2, 2}},
}

// Curve returns a line and its points.
func Curve(points plotter.XYer, look Look) (*plotter.Line, *plotter.Scatter, error) {
	line, dots, err := plotter.NewLinePoints(points)
	if err != nil {
		return nil, nil, err
	}
	line.Color, line.Width, line.Dashes = look.Color, vg.Points(1.3), look.Dashes
	dots.Color, dots.Shape, dots.Radius = look.Color, look.Shape, vg.Points(3)
	return line, dots, nil
}

// A Swatch is a colour in a legend.
type Swatch struct{ color.Color }

// Thumbnail fills most of its space in the legend.
func (s Swatch) Thumbnail(c *draw.Canvas) {
	b := c.Rectangle
	b.Min.Y += vg.Points(1)
	c.FillPolygon(s.Color, []vg.Point{b.Min, {X: b.Max.X, Y: b.Min.Y}, b.Max, {X: b.Min.X, Y: b.Max.Y}})
}
