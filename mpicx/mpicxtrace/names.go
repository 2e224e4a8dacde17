package main

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// isRepair says whether an operation repairs, or waits for the end of an error.
func isRepair(op string) bool {
	name, _, _ := strings.Cut(op, " on ")
	return slices.Contains([]string{"the verdict", "Agree", "AgreeFailed", "Shrink", "Replace", "Parked"}, name)
}

// grouped returns a number with commas: 12,345.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// A unit is the unit of the times in a drawing.
type unit struct {
	name string
	ns   float64
}

// unitOf returns the unit for a length of time in nanoseconds.
func unitOf(span float64) unit {
	switch {
	case span < 2e7:
		return unit{"µs", 1e3}
	case span < 2e10:
		return unit{"ms", 1e6}
	}
	return unit{"s", 1e9}
}

func (u unit) String(ns float64) string {
	return grouped(int64(math.Round(ns/u.ns))) + " " + u.name
}

// micros returns nanoseconds in microseconds, without the unit.
func micros(ns int64) string { return grouped(int64(math.Round(float64(ns) / 1e3))) }

// ticks returns the times of some labels between from and to.
func ticks(from, to float64, u unit) (at []float64) {
	step := math.Pow(10, math.Floor(math.Log10((to-from)/u.ns/5)))
	for _, f := range []float64{1, 2, 5, 10} {
		if (to-from)/u.ns/(step*f) <= 8 {
			step *= f
			break
		}
	}
	step = max(step, 1) * u.ns
	for t := math.Ceil(from/step) * step; t <= to; t += step {
		at = append(at, t)
	}
	return at
}
