package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Under a launcher some of its processes are spares.
func TestSpares(t *testing.T) {
	if !hasULFM {
		t.Skip("replace needs ulfm")
	}
	defer func() { processes = 0 }()
	const die = "rank=1,iter=40,kind=die"
	for _, test := range []struct {
		processes     int
		args          []string
		ranks, spares int
		err           string
	}{
		{0, []string{"-recovery", "replace", "-inject", die, "-inject", "rank=2,iter=50,kind=die"}, 8, 2, ""},
		{0, []string{"-recovery", "replace", "-inject", die, "-spares", "0", "-ranks", "3"}, 3, 0, ""},
		{5, []string{"-recovery", "replace", "-inject", die, "-spares", "1"}, 4, 1, ""},
		{5, []string{"-recovery", "replace", "-inject", "none", "-spares", "2", "-ranks", "3"}, 3, 2, ""},
		{5, []string{"-recovery", "shrink", "-inject", die}, 5, 0, ""},
		{5, []string{"-recovery", "replace"}, 0, 0, `-recovery "replace", expected -spares 1 or more`},
		{5, []string{"-recovery", "replace", "-spares", "5"}, 0, 0, "-spares 5, expected fewer than 5"},
		{5, []string{"-recovery", "replace", "-spares", "1", "-ranks", "5"}, 0, 0, "-ranks 5, expected 4: the launcher has started 5 processes, of which 1 are spares"},
		{4, []string{"-recovery", "replace", "-respawn"}, 4, 0, ""},
		{0, []string{"-recovery", "replace", "-inject", die, "-respawn"}, 8, 0, ""},
		{5, []string{"-recovery", "replace", "-respawn", "-spares", "1"}, 0, 0, "-respawn, expected it with -recovery replace, and without -spares and -compare"},
		{5, []string{"-respawn"}, 0, 0, "-respawn, expected it with -recovery replace"},
		{5, []string{"-spares", "1"}, 0, 0, "-spares 1, expected it with -recovery replace or -compare only"},
		{0, []string{"-recovery", "replace", "-spares", "-1"}, 0, 0, "-spares -1, expected 0 or more"},
	} {
		processes = test.processes
		c, err := parseFlags(test.args)
		if test.err != "" {
			require.ErrorContains(t, err, test.err)
			continue
		}
		require.NoError(t, err, "%v", test.args)
		require.Equal(t, test.ranks, c.Ranks, "%v", test.args)
		require.Equal(t, test.spares, c.spares(), "%v", test.args)
	}
}
