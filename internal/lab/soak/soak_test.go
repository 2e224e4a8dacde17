package main

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/blackchannel"
	"github.com/mpicx/go-mpicx/internal/buildtags"
	"github.com/mpicx/go-mpicx/ulfmbackend"
)

// The first of the schedules that CI runs.
func TestSchedules(t *testing.T) {
	s := soak{next: 1, until: 3000}
	if testing.Short() || buildtags.Race {
		s.until = 300
	}
	var out bytes.Buffer
	require.True(t, s.run(&out), "%v", &out)
}

// One seed is one run, with or without a trace.
func TestRepeatable(t *testing.T) {
	for seed := uint64(1); seed < 100; seed++ {
		var traces [2]bytes.Buffer
		runs := []*run{newRun(seed, nil), newRun(seed, &traces[0]), newRun(seed, &traces[1])}
		for _, r := range runs {
			r.do()
			require.Equal(t, runs[0].events, r.events)
			require.Equal(t, runs[0].digest, r.digest)
			require.Equal(t, runs[0].err, r.err)
		}
		require.Equal(t, traces[0].String(), traces[1].String())
	}
}

// The checks notice the loss of messages that must not be lost.
func TestChecksNotice(t *testing.T) {
	for _, test := range []struct {
		ulfm   bool
		kind   byte
		expect string
	}{
		{true, byte(ulfmbackend.Notice), "P1"},
		{true, byte(ulfmbackend.Revoke), "H4"},
		{true, byte(ulfmbackend.Up), "P1"},
		{true, byte(ulfmbackend.Decided), "P1"},
		{false, byte(blackchannel.Notice), "P1"},
		{false, byte(blackchannel.Reports), "P1"},
		{false, byte(blackchannel.Verdict), "P1"},
		{false, byte(blackchannel.Closed), "H6"},
	} {
		t.Run(fmt.Sprintf("ulfm %t, kind %d", test.ulfm, test.kind), func(t *testing.T) {
			for seed := uint64(1); seed < 1000; seed++ {
				r := newRun(seed, nil)
				if r.ulfm != test.ulfm || r.ranks > 64 || r.dups && test.expect == "H4" {
					continue // a rank that is not told of a revoke waits for a Dup that others abandon: P1
				}
				r.lossy = func(msg []byte) bool { return msg[0] == test.kind }
				if r.do(); r.err != nil {
					require.Contains(t, r.err.Error(), test.expect)
					return
				}
			}
			t.Error("all went well")
		})
	}
}

// A report of a failure has the end of the trace, and the command that prints all of it.
func TestReport(t *testing.T) {
	var out bytes.Buffer
	s := soak{next: 1, until: 1000, lossy: func(msg []byte) bool { return true }}
	require.False(t, s.run(&out))
	r := newRun(s.failed.seed, io.Discard)
	r.lossy = s.lossy
	r.do()
	require.EqualError(t, r.err, s.failed.err.Error())
	require.Contains(t, out.String(), fmt.Sprintf("Replay it: go -C internal/lab run ./soak -seed %d -trace\n", r.seed))
	require.Contains(t, out.String(), r.err.Error())
	require.Contains(t, out.String(), " µs  rank ")
}
