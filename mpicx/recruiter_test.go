package mpicx

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// silent is a Messenger whose messages the test takes by Next.
type silent struct{ transport.Messenger }

func (silent) Poke() {}

// fresh returns the recruiter of fresh rank 3. An invitation is the list of the old members, which
// are ranks 0 to 2, or what distinguishes it. Function end returns "" while nothing is decided.
func fresh() (g *recruiter, end func() string) {
	text := ""
	g = newRecruiter(3, 5, func(invitation string) (*staff, error) {
		s := new(staff)
		for _, c := range invitation {
			switch {
			case c >= '0' && c <= '2':
				s.old = append(s.old, int(c-'0'))
			case c == '!':
				return nil, errors.New("garbage")
			}
		}
		return s, nil
	})
	g.t = silent{}
	g.abandoned = func(before []int) error { return fmt.Errorf("alone without %v", before) }
	g.await(func(s *staff, err error) {
		switch {
		case text != "":
			text += " again"
		case err != nil:
			text = err.Error()
		case s == nil:
			text = "not needed"
		default:
			text = fmt.Sprint("taken with ", s.old)
		}
	})
	return g, func() string { return text }
}

// A fresh rank accepts what every old member has offered or has died, and one that lives. It is not
// needed when all others have died or ended. In the scripts 0:012 is an invitation from rank 0 in a
// communicator of which 0, 1 and 2 are old members, -0 the death of rank 0, and .0 the end of its
// program.
func TestFreshRank(t *testing.T) {
	const alone = "alone without [0 1 2]"
	for script, want := range map[string]string{
		"":                              "",
		"0:012":                         "",
		"0:012 1:012":                   "",
		"0:012 1:012 2:012":             "taken with [0 1 2]",
		"2:012 1:012 -0":                "taken with [0 1 2]",
		"0:012 -0":                      "",
		"0:012 -0 1:12":                 "",
		"0:012 -0 1:12 2:12":            "taken with [1 2]",
		"0:012 1:12 2:12":               "taken with [1 2]", // rank 0 must have died, which is not known yet
		"0:012 1:012a 2:012a":           "",
		"0:012 1:012a 2:012a -0":        "taken with [0 1 2]",
		"0:012 1:012 -0 -1 2:2":         "taken with [2]",
		"0:012 1:012 -2":                "taken with [0 1 2]",
		"0:012 -0 -1 -2":                alone,
		"-0 -1 0:012 1:012 -2":          alone,
		".0 .1 .2":                      "not needed",
		".0 -1":                         "",
		".0 -1 .2":                      "not needed",
		".0 -1 -2 -0":                   "not needed",
		".0 .1 0:012":                   "",
		".0 .1 0:012 .2":                "", // a rank that has ended still invites
		".0 .1 0:012 .2 1:012 2:012":    "taken with [0 1 2]",
		"-0 .1 .2 1:12 2:12":            "not needed",
		"-3":                            transport.ErrDied.Error(),
		"0:012 -3 1:012 2:012":          transport.ErrDied.Error(),
		"1:!":                           "garbage",
		"0:012 1:012 2:012 -0 -1 -2 -3": "taken with [0 1 2]",
		"0:012 -0 -1 -2 4:012":          alone, // the other fresh member learns that this one has ended
		"0:012 4:012":                   "",
		"0:012 -0 4:012 -1":             "",
		"0:012 -0 4:012 -1 -2":          "taken with [0 1 2]", // rank 4, a fresh member, has passed it on
		"4:012 -0 -1 -2":                "taken with [0 1 2]",
		"4:012 -4 -0 -1 -2":             alone,
		"0:2 1:2":                       "",
		"0:012 1:012 -0 -1":             "",
		"0:012 1:012 -0 -1 .2":          "not needed",
		"0:012 1:012 -0 -1 2:12":        "taken with [1 2]",
	} {
		g, end := fresh()
		for _, event := range strings.Fields(script) {
			var r int
			var invitation string
			switch event[0] {
			case '-':
				_, _ = fmt.Sscanf(event, "-%d", &r)
				g.Died(r)
			case '.':
				_, _ = fmt.Sscanf(event, ".%d", &r)
				g.Take(r, []byte{leaving})
			default:
				_, _ = fmt.Sscanf(event, "%d:%s", &r, &invitation)
				g.Take(r, append([]byte{inviting}, invitation...))
			}
		}
		require.Equal(t, want, end(), script)
	}
}

// A fresh rank greets the ranks before it. Each tells it when its program has ended, or that it
// has.
func TestFreshRankIsToldOfEnds(t *testing.T) {
	g, _ := fresh()
	for r := range 3 {
		to, payload, ok := g.Next()
		require.True(t, ok)
		require.Equal(t, r, to)
		require.Equal(t, []byte{greeting}, payload)
	}
	_, _, ok := g.Next()
	require.False(t, ok)

	other := newRecruiter(0, 5, nil)
	other.t = silent{}
	other.Take(3, []byte{greeting})
	_, _, ok = other.Next()
	require.False(t, ok)
	other.leave()
	other.Take(4, []byte{greeting})
	for _, r := range []int{3, 4} {
		to, payload, ok := other.Next()
		require.True(t, ok)
		require.Equal(t, r, to)
		require.Equal(t, []byte{leaving}, payload)
	}
}

func TestInvitations(t *testing.T) {
	l := &lineage{pool: &Comm{size: 8}, workers: []int{0, 1, 2, 3}}
	was := succession{line: 2, used: 1, taken: map[int]int{4: 1}}
	text := invitation(was.note(0, []int{0, 4, 2, 3}), []int{4, 0})
	s, err := l.readInvitation(text)
	require.NoError(t, err)
	require.Equal(t, []int{5, 6, 2, 3}, s.members)
	require.Equal(t, []int{0, 1}, s.replaced)
	require.Equal(t, []int{2, 3}, s.old)
	require.Equal(t, succession{line: 3, used: 3, taken: map[int]int{5: 1, 6: 2}}, s.succession)
	for n := range len(text) {
		_, err := l.readInvitation(text[:n])
		require.Error(t, err)
	}
}

func FuzzInvitation(f *testing.F) {
	l := &lineage{pool: &Comm{size: 8}, workers: []int{0, 1, 2, 3}}
	f.Add([]byte(invitation(succession{line: 2, used: 1, taken: map[int]int{4: 1}}.note(0, []int{0, 4, 2, 3}), []int{4, 0})))
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := l.readInvitation(string(text))
		if err == nil && s.err == nil {
			require.Len(t, s.members, len(s.old)+len(s.replaced))
		}
	})
}

// A fresh rank that is not needed may be a member of a communicator, if a rank before it has died.
func TestForsaken(t *testing.T) {
	for _, test := range []struct {
		dead []int
		want bool
	}{{[]int{0, 2}, true}, {[]int{1}, true}, {nil, false}} {
		g, end := fresh()
		for _, r := range test.dead {
			g.Died(r)
		}
		for r := range 3 {
			g.Take(r, []byte{leaving})
		}
		require.Equal(t, "not needed", end())
		require.Equal(t, test.want, g.isForsaken())
	}
	g, _ := fresh()
	g.Died(0)
	require.False(t, g.isForsaken())
}
