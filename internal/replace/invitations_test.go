package replace

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/wire"
)

// waiting returns the machine of a rank of 5 that waits, 3 or 4. The world has ranks 0 to 2.
func waiting(t *testing.T, rank int) *Machine {
	m := New(rank, 5, 3)
	require.Nil(t, m.Wait())
	return m
}

// offerOf returns an invitation of ranks 3 and 4. A digit of text is an old member. A letter
// distinguishes the invitation from others of the same members.
func offerOf(text string) string {
	next := &Membership{Number: 2, next: 5}
	for _, c := range text {
		if c >= '0' && c <= '2' {
			next.Members = append(next.Members, int(c-'0'))
		} else {
			next.Number = int(c)
		}
	}
	n := len(next.Members)
	next.Members, next.Places = append(next.Members, 3, 4), []int{n, n + 1}
	return next.encode()
}

// feed feeds a machine with an event, and returns what it says of its fate: "" while nothing is
// decided. 0:012 is an invitation by rank 0 of which 0, 1 and 2 are old members, -0 the death of
// rank 0, and .0 the end of its program.
func feed(m *Machine, event string) string {
	var r int
	var f *Fate
	var invitation string
	switch event[0] {
	case '-':
		_, _ = fmt.Sscanf(event, "-%d", &r)
		if f = m.Died(r); r == m.rank {
			f = m.Fail(errors.New("died"))
		}
	case '.':
		_, _ = fmt.Sscanf(event, ".%d", &r)
		f = m.Receive(r, []byte{leaving})
	default:
		_, _ = fmt.Sscanf(event, "%d:%s", &r, &invitation)
		text := "garbage"
		if invitation != "!" {
			text = offerOf(invitation)
		}
		f = m.Receive(r, append([]byte{inviting}, text...))
	}
	switch {
	case f == nil:
		return ""
	case f.Err != nil:
		return f.Err.Error()
	case f.Membership == nil:
		return "not needed"
	}
	return fmt.Sprint("taken with ", f.Membership.Members[:len(f.Membership.Members)-2])
}

// A rank accepts what every member before it has offered or has died, and one that lives. It is not
// needed when all ranks before it have died or ended. Rank 4 waits for what rank 3, a rescue before
// it, accepts. Nothing is decided before the last event, or before the one at the |.
func TestFate(t *testing.T) {
	alone := ErrAlone.Error()
	ofRank4 := map[string]string{
		"0:012 1:012 2:012 3:012": "taken with [0 1 2]",
		"0:012 1:012 2:012 -3":    "taken with [0 1 2]",
		"-0 1:12 2:12 3:012 -2":   "", // rank 3 knows of no death but those of ranks 1 and 2
		"-0 3:012 -1 -2":          "taken with [0 1 2]",
		"-0 1:12 2:12 3:012 -3":   "taken with [1 2]",
	}
	ofRank3 := map[string]string{
		"0:012 1:012 2:012":               "taken with [0 1 2]",
		"2:012 1:012 -0":                  "taken with [0 1 2]",
		"0:012 -0 1:12 2:12":              "taken with [1 2]",
		"0:012 1:12 2:12":                 "taken with [1 2]", // rank 0 must have died, which is not known yet
		"0:012 1:012a 2:012a -0":          "taken with [0 1 2]",
		"0:012 1:012 -0 -1 2:2":           "taken with [2]",
		"0:012 1:012 -2":                  "taken with [0 1 2]",
		"0:012 -0 -1 -2":                  alone,
		"-0 -1 0:012 1:012 -2":            alone,
		".0 .1 .2":                        "not needed",
		".0 -1 .2":                        "not needed",
		".0 -1 -2 | -0":                   "not needed",
		"-0 .0 -1 -2":                     "not needed",         // the message of its end was slower
		".0 .1 0:012 .2 1:012 2:012":      "taken with [0 1 2]", // a rank that has ended still invites
		"-0 .1 .2 | 1:12 2:12":            "not needed",
		"-3":                              "died",
		"0:012 -3 | 1:012 2:012":          "died",
		"0:012 1:012 2:012 | -0 -1 -2 -3": "taken with [0 1 2]",
		"0:012 -0 -1 -2 | 4:012":          alone, // the other fresh member learns that this one has ended
		"0:012 4:012":                     "",
		"0:012 -0 4:012 -1 -2":            "taken with [0 1 2]", // rank 4, a fresh member, has passed it on
		"4:012 -0 -1 -2":                  "taken with [0 1 2]",
		"4:012 -4 -0 -1 -2":               alone,
		"0:2 1:2":                         "",
		"0:012 1:012 -0 -1 .2":            "not needed",
		"0:012 1:012 -0 -1 2:12":          "taken with [1 2]",
		"1:!":                             "an invitation of 7 bytes: ",
	}
	for rank, scripts := range map[int]map[string]string{3: ofRank3, 4: ofRank4} {
		for script, want := range scripts {
			m := waiting(t, rank)
			deciding, after, _ := strings.Cut(script, " | ")
			events := strings.Fields(deciding)
			for i, event := range append(events, strings.Fields(after)...) {
				said := feed(m, event)
				if i == len(events)-1 && want != "" {
					require.True(t, strings.HasPrefix(said, want), "%s: %q, expected %q", script, said, want)
					continue
				}
				require.Empty(t, said, "%s: at %s", script, event)
			}
		}
	}
}

// messages returns what a machine sends: to whom, and the kinds.
func messages(m *Machine) (sent [][2]int) {
	for s, ok := m.Next(); ok; s, ok = m.Next() {
		sent = append(sent, [2]int{s.To, int(s.Payload[0])})
	}
	return sent
}

// A rank that waits greets the ranks before it. Each tells it when its program has ended, or that
// it has.
func TestGreeting(t *testing.T) {
	require.Equal(t, [][2]int{{0, int(greeting)}, {1, int(greeting)}, {2, int(greeting)}}, messages(waiting(t, 3)))
	m := New(0, 5, 3)
	m.Receive(3, []byte{greeting})
	require.Empty(t, messages(m))
	m.Leave()
	m.Receive(4, []byte{greeting})
	require.Equal(t, [][2]int{{3, int(leaving)}, {4, int(leaving)}}, messages(m))
}

// A rank that is not needed may be a member of a communicator, if a rank before it has not said
// that it has ended.
func TestForsaken(t *testing.T) {
	for script, want := range map[string]bool{"": true, ".0 .1": true, "-0 .1 .2": true, ".0 .1 .2": false, ".0 .1 .2 -1": false, "0:0 -1 -2": false} {
		m := waiting(t, 3)
		for _, event := range strings.Fields(script) {
			feed(m, event)
		}
		require.Equal(t, want, m.Forsaken(), script)
	}
	require.False(t, New(2, 5, 3).Forsaken(), "a worker")
}

// Ranks that have died while they waited are passed over. What is left is counted.
func TestSuccessor(t *testing.T) {
	m := New(0, 6, 3)
	m.Died(3)
	m.Died(1)
	require.Equal(t, wire.AppendRanks(nil, []int{3}), m.Lost())
	next, left, err := m.Successor([]int{0, 1, 2}, []int{1}, m.Lost())
	require.NoError(t, err)
	require.Equal(t, 2, left)
	require.Equal(t, []int{0, 4, 2}, next.Members)
	m.Adopt(next)
	require.Equal(t, [][2]int{{4, int(inviting)}}, messages(m))
	next, left, err = m.Successor([]int{0, 4, 2}, []int{1, 2}, m.Lost())
	require.NoError(t, err)
	require.Nil(t, next)
	require.Equal(t, 1, left)
	_, _, err = m.Successor([]int{0, 4, 2}, nil, []byte{1})
	require.Error(t, err)
}

// When all ranks that had a place have died, each rescue that is left says so, not only the first.
// If a rescue had a place, the program has ended.
func TestEveryRescueIsAlone(t *testing.T) {
	for kind, want := range map[byte]error{unneeded: ErrAlone, leaving: nil} {
		m := waiting(t, 4)
		for r := range 3 {
			require.Nil(t, m.Died(r))
		}
		f := m.Receive(3, []byte{kind})
		require.Equal(t, &Fate{Err: want}, f)
	}
	first := New(3, 5, 3)
	first.Receive(4, []byte{greeting})
	first.Wait()
	first.Died(0)
	first.Died(1)
	require.Equal(t, ErrAlone, first.Died(2).Err)
	first.Leave()
	for m, ok := first.Next(); ok; m, ok = first.Next() {
		if m.To == 4 {
			require.Equal(t, []byte{unneeded}, m.Payload)
		}
	}
}
