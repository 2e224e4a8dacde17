package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/mpicx/go-mpicx/internal/observe"
)

// A mark says how an event is drawn: with colours that colour-blind readers can distinguish
// (Okabe and Ito), and shapes for readers who see no colours. Row is the height in a track.
type mark struct {
	name, colour, shape string
	row                 int
	kinds               []observe.Kind
}

const firstAfter observe.Kind = "first operation after"

// Shapes of marks, with the event at 0, 0. They have the colour of the mark: cross and ring as
// lines, the others filled.
const (
	cross   = `<path d="M-5 -5 l10 10 m0 -10 l-10 10" stroke-width="3"/>`
	circle  = `<circle r="4.5"/>`
	ring    = `<circle r="4" stroke-width="2"/>`
	square  = `<rect x="-4.5" y="-4.5" width="9" height="9"/>`
	bar     = `<rect x="-2" y="-6" width="4" height="12"/>`
	diamond = `<path d="M0 -5 l5 5 l-5 5 l-5 -5 z"/>`
	down    = `<path d="M-5 -4.5 h10 l-5 9 z"/>`
	toRight = `<path d="M-3 -5 v10 l9 -5 z"/>`
)

var marks = []mark{
	{"fault", "#D55E00", cross, 0, []observe.Kind{observe.Fault, observe.Dies}},
	{"death", "#000000", diamond, 0, []observe.Kind{observe.Death, observe.Revoke}},
	{"notice", "#E69F00", down, 1, []observe.Kind{observe.Notice}},
	{"join", "#56B4E9", circle, 2, []observe.Kind{observe.Join}},
	{"verdict", "#0072B2", square, 1, []observe.Kind{observe.Verdict}},
	{"epoch", "#009E73", bar, 0, []observe.Kind{observe.Epoch}},
	{"agree", "#999999", ring, 2, []observe.Kind{observe.Agree}},
	{"replace, shrink", "#CC79A7", diamond, 0, []observe.Kind{observe.Replace, observe.Shrink}},
	{"restore", "#F0E442", square, 1, []observe.Kind{observe.Restore}},
	{"first operation after", "#009E73", toRight, 0, []observe.Kind{firstAfter}},
}

// Lengths in pixels.
const (
	width      = 840 // what README has room for on GitHub
	left       = 150 // for the names of tracks
	right      = 30
	trackHigh  = 66
	barHigh    = 16
	axisHigh   = 44
	titleHigh  = 64
	panelHigh  = 26 // of its name
	legendHigh = 58
	letter     = 6.3 // the width of a letter 11 pixels high
)

// A picture is an SVG that is being drawn.
type picture struct {
	bytes.Buffer
	t *incident
}

func (p *picture) add(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

func (p *picture) text(x, y float64, style, s string) {
	p.add(`<text x="%.1f" y="%.1f" %s>%s</text>`, x, y, style, escaped(s))
}

// writeSVG draws an incident: the whole and, above it, the time in which ranks were told, if that
// is too short to be seen in the whole.
func writeSVG(w io.Writer, t *incident) error {
	p := &picture{t: t}
	panels := t.panels()
	each := float64(len(t.ranks)*trackHigh + axisHigh + panelHigh)
	high := titleHigh + float64(len(panels))*each + legendHigh
	p.add(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%.0f" viewBox="0 0 %d %.0f" font-family="Helvetica, Arial, sans-serif" font-size="12" fill="#1a1a1a">`, width, high, width, high)
	p.add(`<rect width="%d" height="%.0f" fill="#ffffff"/>`, width, high)
	title := t.summary()
	p.text(16, 28, `font-size="18" font-weight="bold"`, strings.ToUpper(title[:1])+title[1:])
	if texts := t.texts(); len(texts) > 0 {
		p.text(16, 50, `font-size="12" fill="#555555"`, short(texts[len(texts)-1], 170))
	}
	y := float64(titleHigh)
	for i, panel := range panels {
		p.text(16, y+14, `font-size="13" font-weight="bold"`, panel.name)
		var inner *panelOf
		if i > 0 {
			inner = &panels[0]
		}
		p.panel(panel, inner, y+panelHigh)
		y += each
	}
	p.legend(y + 12)
	p.add("</svg>")
	_, err := w.Write(p.Bytes())
	return err
}

func short(s string, most int) string {
	if letters := []rune(s); len(letters) > most {
		return string(letters[:most-1]) + "…"
	}
	return s
}

// A panelOf is a range of time.
type panelOf struct {
	name     string
	from, to float64 // nanoseconds after the fault
}

func (p panelOf) x(t float64) float64 {
	return left + (t-p.from)/(p.to-p.from)*(width-left-right)
}

// panels returns the whole and, before it, the time in which ranks are told of the error.
func (t *incident) panels() []panelOf {
	span := max(float64(t.end-t.begin), 1e3)
	whole := panelOf{"From the fault until all continue", -0.12 * span, 1.05 * span}
	told := 0.0
	for _, e := range t.events {
		if at := float64(e.at - t.begin); at < span && slices.Contains(columns[:6], e.Kind) {
			told = max(told, at)
		}
	}
	if told < 500 || told > span/3 {
		return []panelOf{whole}
	}
	return []panelOf{{"The error becomes every rank's", -0.12 * told, 1.08 * told}, whole}
}

// panel draws the tracks of all ranks, and shades the range of inner.
func (p *picture) panel(panel panelOf, inner *panelOf, y float64) {
	ranks := p.t.ranks
	bottom := y + float64(len(ranks)*trackHigh)
	if inner != nil {
		x := panel.x(inner.from)
		p.add(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="#fff3c4"/>`, x, y, max(panel.x(inner.to)-x, 1.5), bottom-y)
	}
	u := unitOf(panel.to - panel.from)
	for _, at := range ticks(panel.from, panel.to, u) {
		x := panel.x(at)
		p.add(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#e3e3e3"/>`, x, y, x, bottom+5)
		p.text(x, bottom+19, `text-anchor="middle"`, u.String(at))
	}
	p.text((left+width-right)/2, bottom+36, `text-anchor="middle" fill="#555555"`, "after the fault")
	heights := make(map[int]float64)
	for i, r := range ranks {
		top := y + float64(i*trackHigh)
		heights[r.id] = top
		p.add(`<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#bbbbbb"/>`, 16, top+trackHigh, width-right, top+trackHigh)
		p.text(16, top+22, `font-weight="bold"`, r.String())
		if p.t.died(r.id) {
			p.text(16, top+38, `fill="#D55E00"`, "dies")
		}
		p.bars(panel, r, top)
	}
	p.add(`<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#bbbbbb"/>`, 16, y, width-right, y)
	for _, a := range p.t.arrows() {
		from, to := float64(a[0].at-p.t.begin), float64(a[1].at-p.t.begin)
		if panel.from <= from && from <= to && to <= panel.to {
			p.add(`<line class="arrow" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#E69F00" stroke-opacity="0.7"/>`,
				panel.x(from), heights[a[0].Rank]+markAt(1), panel.x(to), heights[a[1].Rank]+markAt(1))
		}
	}
	p.marks(panel, heights)
}

func markAt(row int) float64 { return barHigh + 14 + float64(row)*13 }

// bars draws the operations in which a rank was blocked. Of operations less than a pixel apart
// it draws one.
func (p *picture) bars(panel panelOf, r *rank, top float64) {
	last := -1.0
	for _, o := range p.t.run.operations {
		begin, end := float64(o.begin-p.t.begin), float64(o.end-p.t.begin)
		if o.rank != r.id || end < panel.from || begin > panel.to {
			continue
		}
		x, to := panel.x(max(begin, panel.from)), panel.x(min(end, panel.to))
		if to < last+0.7 {
			continue
		}
		last = to
		long := max(to-x, 0.7)
		p.add(`<rect x="%.1f" y="%.1f" width="%.1f" height="%d" rx="2" fill="#dbe4ee" stroke="#8fa3b8" stroke-width="0.6"><title>%s</title></rect>`, x, top+4, long, barHigh, escaped(o.name+", "+unitOf(end-begin).String(end-begin)))
		if letters := int((long - 8) / letter); letters >= 5 {
			p.text(x+4, top+barHigh, `font-size="11"`, short(o.name, letters))
		}
	}
}

func escaped(s string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(s))
	return b.String()
}

// marks draws the events.
func (p *picture) marks(panel panelOf, heights map[int]float64) {
	draw := func(kind observe.Kind, at int64, rank int, title string) {
		i := slices.IndexFunc(marks, func(m mark) bool { return slices.Contains(m.kinds, kind) })
		if t := float64(at - p.t.begin); i >= 0 && t >= panel.from && t <= panel.to {
			p.shape(marks[i], panel.x(t), heights[rank]+markAt(marks[i].row), title)
		}
	}
	for _, e := range p.t.events {
		if e.follows {
			continue
		}
		title := fmt.Sprintf("%s at rank %d, %s", e.Kind, e.Rank, micros(e.at-p.t.begin)+" µs")
		if e.Comm != "" {
			title += ", on " + e.Comm
		}
		draw(e.Kind, e.at, e.Rank, title)
	}
	for _, rank := range slices.Sorted(maps.Keys(p.t.after)) {
		o := p.t.after[rank]
		draw(firstAfter, o.begin, rank, fmt.Sprintf("first operation after, at rank %d: %s", rank, o.name))
	}
}

// shape draws the shape of a mark.
func (p *picture) shape(m mark, x, y float64, title string) {
	paint := fmt.Sprintf(`fill="%s" stroke="#1a1a1a" stroke-width="0.7"`, m.colour)
	if m.shape == cross || m.shape == ring {
		paint = fmt.Sprintf(`fill="none" stroke="%s"`, m.colour)
	}
	p.add(`<g class="mark" transform="translate(%.1f %.1f)" %s><title>%s</title>%s</g>`, x, y, paint, escaped(title), m.shape)
}

// legend draws what the marks mean.
func (p *picture) legend(y float64) {
	x := 24.0
	room := func(long float64) {
		if x+long > width-right {
			x, y = 24, y+22
		}
	}
	for _, m := range marks {
		long := 30 + float64(len(m.name))*letter*1.1
		room(long)
		p.shape(m, x, y, m.name)
		p.text(x+12, y+4, "", m.name)
		x += long
	}
	room(170)
	p.add(`<rect x="%.1f" y="%.1f" width="26" height="%d" rx="2" fill="#dbe4ee" stroke="#8fa3b8" stroke-width="0.6"/>`, x-6, y-8, barHigh)
	p.text(x+26, y+4, "", "blocked in an operation")
}
