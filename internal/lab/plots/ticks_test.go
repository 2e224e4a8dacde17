package plots_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/plot"

	"github.com/mpicx/go-mpicx/internal/lab/plots"
)

func TestTicks(t *testing.T) {
	for _, test := range []struct {
		ticks []plot.Tick
		want  string
	}{
		{plots.Linear(0, 5999), "0 1,000 2,000 3,000 4,000 5,000"},
		{plots.Linear(0, 1.18), "0 0.2 0.4 0.6 0.8 1"},
		{plots.Linear(-2600, 2600), "-2,000 -1,000 0 1,000 2,000"},
		{plots.Log(plots.Seconds)(8e-6, 30), "10 µs 100 µs 1 ms 10 ms 100 ms 1 s 10 s"},
		{plots.Log(plots.Number)(3, 40), "5 10 20"},
		{plots.At(plots.Number, 16, 60_000), "16 60,000"},
	} {
		var labels string
		for _, tick := range test.ticks {
			labels = strings.TrimSpace(labels + " " + tick.Label)
		}
		require.Equal(t, test.want, strings.Join(strings.Fields(labels), " "))
	}
}
