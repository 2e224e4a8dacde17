package main

import "github.com/mpicx/go-mpicx/internal/lab/plots"

// planFigures is the name that selects these figures: see -rows.
const planFigures = "virtual: Figures 3 to 5 of paper 000"

// drawPlans draws paper 000's Figures 3 to 5. Here, Figure 4 covers one more decade.
func drawPlans(c config) {
	ns, most := []int{16, 64, 144, 576, 2000, 6000, 20_000, 60_000}, 6000
	if c.quick {
		ns, most = ns[:4], 576
	}
	initiator := &panel{title: "Barriers of " + plots.Number(float64(most)) + " ranks around a revoke", label: "rank that revokes"}
	for k := range 9 {
		i := k * (most - 1) / 8
		initiator.addPlan(float64(i), c.planB(plan{most, 0, i}))
	}
	c.figures["revoke-initiator"] = panels{initiator}

	barrier, allreduce := &panel{title: "Barrier", label: "ranks", logX: true, tick: plots.Number}, &panel{title: "Allreduce of 8 bytes", label: "ranks", logX: true, tick: plots.Number}
	for _, n := range ns {
		barrier.addPlan(float64(n), c.planB(plan{n, 0, anybody}))
		allreduce.addPlan(float64(n), c.planB(plan{n, 8, anybody}))
	}
	c.figures["revoke-ranks"] = panels{barrier, allreduce}

	sizes := &panel{title: "Allreduce of " + plots.Number(float64(most)) + " ranks around a revoke", label: "bytes of a rank", logX: true, logY: true, tick: func(b float64) string { return size(int(b)) }}
	for _, bytes := range planSizes {
		sizes.addPlan(float64(bytes), c.planB(plan{most, bytes, anybody}))
	}
	c.figures["revoke-size"] = panels{sizes}
	c.figures["revoke-disconnected"] = panels{drawDisconnected(c)}
}

// addPlan adds the results of a plan at x, in µs: means and standard deviations.
func (p *panel) addPlan(x float64, d *planTimes) {
	p.unit, p.x = "virtual time, µs", append(p.x, x)
	for _, c := range []struct {
		name string
		of   samples
	}{
		{"before the revoke", d.before},
		{"interrupted by it", d.revoked},
		{"1st after", d.after[0]},
		{"2nd after", d.after[1]},
		{"5th after", d.after[4]},
	} {
		p.add(c.name, c.of.mean()/1e3, c.of.deviation()/1e3)
	}
}
