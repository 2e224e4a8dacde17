package blackchannel

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/errchan"
)

// An error of the first communicator lets ranks close a duplicate where an error is under way. What
// comes of that afterwards is dropped.
func TestClosedByAnErrorAbove(t *testing.T) {
	m := NewMachine(1, 2)
	d := m.Dup(7)
	d.Listen()
	d.Raise(nil, false)
	d.Close()
	drop(m)
	for _, msg := range []*Message{
		{Kind: Verdict, Comm: 7, Verdict: &errchan.Verdict{}}, {Kind: Notice, Comm: 7, Round: 1}, {Kind: Verdict, Comm: 7, Round: 1, Verdict: &errchan.Verdict{}},
	} {
		require.NoError(t, m.Step(0, msg))
		require.True(t, m.Idle())
	}
}

// Reports that come after the final verdict open no round, even if the duplicate is closed.
func TestClosedAfterACorruption(t *testing.T) {
	m := NewMachine(0, 3)
	d := m.Dup(7)
	d.Listen()
	d.Raise(nil, true)
	late := &Message{Kind: Reports, Comm: 7, Reports: []errchan.Report{{Rank: 1}}}
	for child := 1; child <= 2; child++ {
		require.NoError(t, m.Step(child, &Message{Kind: Reports, Comm: 7}))
	}
	d.Close()
	drop(m)
	require.NoError(t, m.Step(1, late))
	require.True(t, m.Idle())
}

// drop drops what a machine has to say.
func drop(m *Machine) {
	for more := true; more; {
		_, more = m.Next()
	}
}
