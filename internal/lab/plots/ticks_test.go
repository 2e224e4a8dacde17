package plots_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/plot"

	"github.com/mpicx/go-mpicx/internal/lab/plots"
)

func labels(ticks []plot.Tick) (all []string) {
	for _, t := range ticks {
		all = append(all, t.Label)
	}
	return all
}

func TestTicks(t *testing.T) {
	for want, ticks := range map[string][]plot.Tick{
		"linear":     plots.Linear(0, 5999),
		"fractions":  plots.Linear(0, 1.18),
		"negative":   plots.Linear(-2600, 2600),
		"logarithms": plots.Log(plots.Seconds)(8e-6, 30),
		"a decade":   plots.Log(plots.Number)(3, 40),
		"given":      plots.At(plots.Number, 16, 60_000),
	} {
		require.Equal(t, map[string][]string{
			"linear":     {"0", "1,000", "2,000", "3,000", "4,000", "5,000"},
			"fractions":  {"0", "0.2", "0.4", "0.6", "0.8", "1"},
			"negative":   {"-2,000", "-1,000", "0", "1,000", "2,000"},
			"logarithms": {"10 µs", "100 µs", "1 ms", "10 ms", "100 ms", "1 s", "10 s"},
			"a decade":   {"5", "10", "20"},
			"given":      {"16", "60,000"},
		}[want], labels(ticks), want)
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 7: "7", 999: "999", 2500: "2,500", 1234567: "1,234,567", -100: "-100", -2500: "-2,500", 0.1 + 0.2: "0.3", 1e-6: "0.000001"} {
		require.Equal(t, want, plots.Number(v))
	}
}
