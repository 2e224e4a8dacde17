package main

import (
	"fmt"
	"slices"
	"time"
)

// samples are times of one operation, in nanoseconds.
type samples []float64

func (s samples) median() float64 { return s.quantile(0.5) }

func (s samples) least() float64 { return slices.Min(s) }

func (s samples) quantile(q float64) float64 {
	sorted := slices.Sorted(slices.Values(s))
	return sorted[int(q*float64(len(sorted)-1)+0.5)]
}

// String returns the median, with the quartiles if there are several samples.
func (s samples) String() string {
	switch len(s) {
	case 0:
		return ""
	case 1:
		return short(s[0])
	}
	return fmt.Sprintf("%s (%s–%s)", short(s.median()), short(s.quantile(0.25)), short(s.quantile(0.75)))
}

func short(ns float64) string {
	d := time.Duration(ns)
	switch {
	case d < 10*time.Microsecond:
		return fmt.Sprintf("%.0f ns", ns)
	case d < 100*time.Microsecond:
		return fmt.Sprintf("%.1f µs", ns/1e3)
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.0f µs", ns/1e3)
	}
	return fmt.Sprintf("%.0f ms", ns/1e6)
}

// inTurn takes n samples of each of several operations, in turn. Each thing returns the time of one
// operation.
func inTurn(n int, things ...func() time.Duration) []samples {
	taken := make([]samples, len(things))
	for i := range n {
		for j := range things {
			j = (i + j) % len(things) // the first one alternates
			taken[j] = append(taken[j], float64(things[j]()))
		}
	}
	return taken
}

// must ends the program on an error that no row expects.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
