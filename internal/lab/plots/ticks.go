package plots

import (
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
)

// Linear returns labelled ticks at multiples of 1, 2 or 5 times a power of ten.
func Linear(low, high float64) (ticks []plot.Tick) {
	step := math.Pow10(int(math.Floor(math.Log10(high - low))))
	for _, divided := range []float64{1, 2, 5, 10} {
		if (high-low)*divided/step >= 4 {
			step /= divided
			break
		}
	}
	for k := int(math.Ceil(low/step - 1e-9)); float64(k)*step <= high*(1+1e-9); k++ {
		v := float64(k) * step
		ticks = append(ticks, plot.Tick{Value: v, Label: Number(v)})
	}
	return ticks
}

// Log returns a ticker for logarithmic axes with labelled ticks at powers of ten and, if there are
// few, at 2 and 5 times these.
func Log(label func(float64) string) plot.TickerFunc {
	return func(low, high float64) (ticks []plot.Tick) {
		times := []float64{1}
		if high/low < 300 {
			times = []float64{1, 2, 5}
		}
		for e := int(math.Floor(math.Log10(low))); math.Pow10(e) <= high; e++ {
			for _, t := range times {
				if v := t * math.Pow10(e); v >= low*(1-1e-9) && v <= high*(1+1e-9) {
					ticks = append(ticks, plot.Tick{Value: v, Label: label(v)})
				}
			}
		}
		return ticks
	}
}

// At returns ticks at these values.
func At(label func(float64) string, values ...float64) (ticks plot.ConstantTicks) {
	for _, v := range values {
		ticks = append(ticks, plot.Tick{Value: v, Label: label(v)})
	}
	return ticks
}

// Number formats a number with commas: 2,500.
func Number(v float64) string {
	whole, fraction, _ := strings.Cut(strconv.FormatFloat(round(v), 'f', -1, 64), ".")
	for i := len(whole) - 3; i > 0 && whole[i-1] != '-'; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if fraction != "" {
		whole += "." + fraction
	}
	return whole
}

// Seconds formats a time with a suitable unit: 10 µs.
func Seconds(v float64) string {
	switch {
	case v < 0.999e-3:
		return Number(v*1e6) + " µs"
	case v < 0.999:
		return Number(v*1e3) + " ms"
	}
	return Number(v) + " s"
}

// round removes the rounding errors of sums of fractions.
func round(v float64) float64 {
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 9, 64), 64)
	return v
}
