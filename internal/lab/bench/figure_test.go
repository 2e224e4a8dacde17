package main

import (
	goimage "image"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/plot"

	"github.com/mpicx/go-mpicx/internal/lab/plots"
)

// drawn are figures of each kind.
func drawn() figures {
	f := make(figures)
	for _, n := range []int{16, 144, 576, 6000} {
		ms := func(v float64) (s samples) {
			for k := range 200 {
				s = append(s, v*1e6*(1+math.Pow(float64(k%50)/40, 8)))
			}
			return s
		}
		f.addBoxes("boxes", n, "mpicx", ms(0.003*float64(n)), "the paper's protocol", ms(0.004*float64(n)))
	}

	sizes := &panel{title: "Allreduce of 6,000 ranks around a revoke", label: "bytes of a rank", logX: true, logY: true, tick: func(b float64) string { return size(int(b)) }}
	initiator := &panel{title: "Barriers of 6,000 ranks around a revoke", label: "rank that revokes"}
	for i, bytes := range planSizes {
		us := func(v float64) samples { return samples{1000 * v, 1000 * v, 1100 * v} }
		d := &planTimes{before: us(30 + float64(bytes)/1000), revoked: us(25), after: [after]samples{us(48), us(33), us(32), us(31), us(31)}}
		sizes.addPlan(float64(bytes), d)
		initiator.addPlan(float64(5999*i)/float64(len(planSizes)-1), d)
	}
	f["curves"], f["panels"] = panels{sizes}, panels{initiator, sizes}

	job := &lanczosJob{name: "4 + 4 processes, SIGKILL, mpicxrun", figure: "bars"}
	for i, c := range lanczosCases {
		r := new(lanczosRun)
		r.Seconds.Computing, r.Seconds.Redoing = 0.6, 0.04*float64(len(c.kills))
		r.Seconds.Checkpointing, r.Seconds.Detecting = 0.0004, 0.0003*float64(i)
		r.Seconds.Rebuilding, r.Seconds.Reading = 0.007*float64(len(c.kills)), 0.002
		f.addBar(job, c.bar, []*lanczosRun{r})
	}
	for _, row := range tableI {
		f.addTableI(0, row.ranks, samples{float64(row.ranks) * float64(time.Microsecond)}, row.scan)
		f.addTableI(1, row.ranks, samples{35e6}, row.detection)
		f.addTableI(3, row.ranks, samples{10e9}, row.detection)
		f.addTableI(2, row.ranks, samples{2e6}, row.detection)
	}
	return f
}

// Nothing is clipped, and every tick has a label.
func TestFigures(t *testing.T) {
	for name, f := range drawn() {
		all, err := f.plots()
		require.NoError(t, err)
		image := plots.Draw(all...).Image()
		bounds := image.Bounds()
		inside := bounds.Inset(4)
		for i := range bounds.Dx() * bounds.Dy() {
			at := bounds.Min.Add(goimage.Pt(i%bounds.Dx(), i/bounds.Dx()))
			if r, g, b, _ := image.At(at.X, at.Y).RGBA(); !at.In(inside) && r&g&b != 0xffff {
				require.Failf(t, "ink at the edge", "%s at %v", name, at)
			}
		}
		for _, p := range all {
			isLabelled(t, name, p.X)
			isLabelled(t, name, p.Y)
		}
	}
}

func isLabelled(t *testing.T, name string, axis plot.Axis) {
	visible := 0
	for _, tick := range axis.Tick.Marker.Ticks(axis.Min, axis.Max) {
		require.NotEmpty(t, tick.Label, "%s: %q at %v", name, axis.Label.Text, tick.Value)
		if tick.Value >= axis.Min && tick.Value <= axis.Max {
			visible++
		}
	}
	require.GreaterOrEqual(t, visible, 3, "%s: %q", name, axis.Label.Text)
}
