package fault

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/local"
	"github.com/mpicx/go-mpicx/ulfmbackend"
)

// Plans, and how String writes them.
var plans = map[string]string{
	"":                                        "",
	" ;\n ;":                                  "",
	"kill 3 at operation 17":                  "",
	"kill 3 in Allreduce step 2":              "",
	"kill 3 in Bcast step 1 call 4":           "",
	"kill 0 in agree message 1":               "",
	"kill 2 random seed 7 of 500":             "",
	"kill any 2 random seed 0 of 500":         "",
	"kill 3 by SIGTERM at operation 1":        "",
	"exit 2 with status 0 in Bcast step 1":    "",
	"stop any 2 for 200ms random seed 1 of 2": "",
	"must kill 3 in Allreduce step 2":         "",
	"must stop any 2 for 1s random seed 1 of 2; kill 0 at operation 1":                                "",
	"stop 1 for 0.25s in end message 1":                                                               "",
	"\tkill  1 in end message 2 ;\n\n kill 2 at  operation 03\n":                                      "kill 1 in end message 2; kill 2 at operation 03",
	fmt.Sprintf("kill %d random seed %d of %d", math.MaxInt32, uint64(math.MaxUint64), math.MaxInt32): "",
}

func TestParse(t *testing.T) {
	for text, want := range plans {
		p, err := Parse(text)
		require.NoError(t, err, text)
		if want == "" {
			want = strings.Trim(text, " ;\n")
		}
		require.Equal(t, want, p.String())
	}
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"die":                              `line 1, column 1: "die", expected must, kill`,
		"must must kill 1":                 `column 6: "must", expected kill, exit`,
		"kill":                             `line 1, column 5: the statement ends, expected any, or a rank from 0 to 2147483647`,
		"kill -1 at operation 1":           `column 6: "-1", expected any, or a rank from 0`,
		"kill 1 on":                        `column 8: "on", expected at, in or random`,
		"kill any 2 at operation 1":        `column 12: "at", expected random`,
		"kill any 0 random seed 1 of 1":    `column 10: "0", expected how many from 1`,
		"kill 1 at operation":              `column 20: the statement ends, expected its number from 1`,
		"kill 1 at operation 0":            `column 21: "0", expected its number from 1`,
		"kill 1 at operation 99999999999":  `"99999999999", expected its number from 1 to 2147483647`,
		"kill 1 in AllReduce step 1":       `column 11: "AllReduce", expected Allgather, AllgatherValue`,
		"kill 1 in Bcast message 1":        `column 17: "message", expected step`,
		"kill 1 in agree step 1":           `column 17: "step", expected message`,
		"kill 1 in agree message 1 call 2": `column 27: "call", expected the end of the statement`,
		"kill 1 random 7":                  `column 15: "7", expected seed`,
		"kill 1 random seed 7":             `column 21: the statement ends, expected of`,
		"kill 1 by SIGSTOP at operation 1": `"SIGSTOP", expected SIGKILL, SIGTERM`,
		"exit 1 at operation 1":            `"at", expected with`,
		"exit 1 with status 256 at":        `"256", expected a status from 0 to 255`,
		"stop 1 for ever":                  `"ever", expected a duration such as 200ms`,
		"stop 1 for -1s at operation 1":    `"-1s", expected a duration`,
		"kill 1 at operation 1;\n kill x":  `line 2, column 7: "x", expected any`,
		"kill 1 at operation 1; kill é é":  `line 1, column 29: "é", expected any`,
	} {
		_, err := Parse(text)
		require.ErrorContains(t, err, want, text)
	}
}

func FuzzParse(f *testing.F) {
	for text := range plans {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse(text)
		if err != nil {
			require.ErrorContains(t, err, "fault plan, line ")
			return
		}
		again, err := Parse(p.String())
		require.NoError(t, err)
		require.Equal(t, p.statements, again.statements)
	})
}

// A plan needs a number of ranks, and perhaps processes: goroutine ranks can only die.
func TestNeeds(t *testing.T) {
	for text, test := range map[string]struct {
		ranks     int
		processes string // the statement that needs them
	}{
		"":                              {},
		"kill 3 at operation 1":         {4, ""},
		"kill any 3 random seed 1 of 9": {3, ""},
		"kill 1 at operation 1; kill 1 by SIGKILL at operation 1":     {2, `"kill 1 by SIGKILL at operation 1"`},
		"exit 1 with status 3 at operation 1":                         {2, `"exit 1 with status 3`},
		"stop any 2 for 1s random seed 1 of 2; kill 0 at operation 1": {2, `"stop any 2 for 1s`},
	} {
		p, err := Parse(text)
		require.NoError(t, err)
		require.NoError(t, p.Fits(test.ranks))
		if test.ranks > 0 {
			statement, _, _ := strings.Cut(text, ";")
			require.ErrorContains(t, p.Fits(test.ranks-1), fmt.Sprintf("%q: ", statement))
		}
		if test.processes == "" {
			require.NoError(t, p.OfProcesses())
		} else {
			require.ErrorContains(t, p.OfProcesses(), test.processes)
		}
	}
}

// It is known what a plan had to do at each rank and has not done, and what the rank has begun.
func TestMissed(t *testing.T) {
	plan, side, _, dup := wrapped(t, "must kill 0 at operation 3; kill 0 at operation 9; must kill 0 in Gather step 1; must kill any 2 random seed 1 of 900")
	missed := func() (all []string) {
		for _, m := range plan.Missed(2) {
			all = append(all, fmt.Sprint(m.Rank, " ", m.Statement))
		}
		return all
	}
	gather := "0 must kill 0 in Gather step 1"
	random := []string{"0 must kill any 2 random seed 1 of 900", "1 must kill any 2 random seed 1 of 900"}
	require.Equal(t, append([]string{"0 must kill 0 at operation 3", gather}, random...), missed())
	require.Equal(t, "0 operations", plan.Counts(0))
	require.Empty(t, plan.Counts(1), "which is not wrapped")
	plan.Note(3, 0)
	plan.Note(3, 1)
	tell(dup[0], listen(dup[0]), &ulfmbackend.Message{Kind: ulfmbackend.Revoke})
	x := &collective.Exchange{Name: "Scatter"}
	x.Start(side, 0, -1, steps(0), new(done))
	require.Equal(t, []int{0}, plan.Killed())
	require.Equal(t, []string{gather}, missed())
	require.Equal(t, "3 operations; 1 call of Scatter with step 1, 2, 3; 1 revoke message", plan.Counts(0))
}

// Which ranks die at random, and when, varies and is determined by the seed.
func TestDraw(t *testing.T) {
	const n, of = 10, 20
	victims, moments := map[int]int{}, map[int]int{}
	for seed := range 200 {
		p, err := Parse(fmt.Sprintf("kill any 3 random seed %d of %d", seed, of))
		require.NoError(t, err)
		count := 0
		for r := range n {
			m, ok := p.statements[0].of(r, n)
			again, _ := p.statements[0].of(r, n)
			require.Equal(t, m, again)
			if ok {
				count++
				victims[r]++
				moments[m.n]++
			}
		}
		require.Equal(t, 3, count)
	}
	for r := range n {
		require.Greater(t, victims[r], 20)
	}
	for k := range of {
		require.Greater(t, moments[k+1], 5)
	}
	require.Len(t, moments, of)
}

type done struct{ ended int }

func (d *done) Completed(*transport.Request) { d.ended++ }
func (d *done) Ended(error)                  { d.ended++ }

// A wrapped side of rank 0, and what arrives at rank 1.
func wrapped(t *testing.T, text string) (plan *Plan, side transport.Comm, bare [2]transport.Comm, dup [2]transport.Comm) {
	plan, err := Parse(text)
	require.NoError(t, err)
	sides := local.NewMortal(2)
	side = plan.Wrap(sides[0])
	name := transport.ErrorChannelName()
	for i, s := range []transport.Comm{side, sides[1]} {
		dup[i], err = s.Sub(name, nil)
		require.NoError(t, err)
	}
	return plan, side, [2]transport.Comm{sides[0], sides[1]}, dup
}

func send(c transport.Comm, tag int, b []byte) *transport.Request {
	r := &transport.Request{Peer: 1, Tag: tag, Buf: b, Done: new(done)}
	if !c.TrySend(1, tag, 0, 0, b) {
		c.Isend(r)
	}
	return r
}

// A mailbox counts the messages that come, and sends its own to rank 1.
type mailbox struct {
	come    int
	out     [][]byte
	channel *ulfmbackend.Channel // whose messages they are
}

func (b *mailbox) Take(int, []byte) { b.come++ }
func (b *mailbox) Died(int)         {}

func (b *mailbox) Purpose(payload []byte) string { return b.channel.Purpose(payload) }

func (b *mailbox) Next() (to int, payload []byte, ok bool) {
	if len(b.out) == 0 {
		return 0, nil, false
	}
	payload, b.out = b.out[0], b.out[1:]
	return 1, payload, true
}

func listen(c transport.Comm) *mailbox {
	b := &mailbox{channel: ulfmbackend.New(c, 0, 0, nil)}
	c.Listen(b)
	return b
}

func tell(c transport.Comm, from *mailbox, msg *ulfmbackend.Message) {
	from.out = append(from.out, ulfmbackend.Encode(msg))
	c.Poke()
}

// arrives says whether rank 1 has a message.
func arrives(c transport.Comm, tag int) bool {
	r := &transport.Request{Peer: 0, Tag: tag, Buf: make([]byte, 100), Done: new(done)}
	c.Irecv(r)
	return r.Done.(*done).ended == 1 && r.Err == nil
}

// The named operation is the first that does not happen. Messages of the error channel do not
// count.
func TestOperation(t *testing.T) {
	plan, side, bare, dup := wrapped(t, "kill 0 at operation 4; kill 0 at operation 9; kill 5 at operation 1")
	side.Probe(&transport.Request{Peer: 1, Done: new(done)})
	side.Irecv(&transport.Request{Peer: 1, Done: new(done)})
	send(side, 7, nil)
	tell(dup[0], listen(dup[0]), &ulfmbackend.Message{Kind: ulfmbackend.Revoke})
	require.Empty(t, plan.Killed())
	r := send(side, 8, nil)
	require.Equal(t, []int{0}, plan.Killed())
	require.ErrorIs(t, r.Err, transport.ErrDied)
	require.True(t, arrives(bare[1], 7))
	require.False(t, arrives(bare[1], 8))
	require.Equal(t, 1, listen(dup[1]).come)
}

// Only ranks that are to die, and can, are wrapped.
func TestUnwrapped(t *testing.T) {
	plan, err := Parse("kill 1 at operation 1")
	require.NoError(t, err)
	side := transport.Comm(local.NewMortal(2)[0])
	require.Same(t, side, plan.Wrap(side))
	side = local.New(2)[1]
	require.Same(t, side, plan.Wrap(side))
}

// Messages are counted by their purpose, those of agreements by the operation that began them.
func TestMessages(t *testing.T) {
	up := func(s ulfmbackend.Stream, calls errchan.Calls) *ulfmbackend.Message {
		return &ulfmbackend.Message{Kind: ulfmbackend.Up, Stream: s, Value: &ulfmbackend.Value{Calls: calls}}
	}
	messages := []struct {
		name string
		msg  *ulfmbackend.Message
	}{
		{"revoke", &ulfmbackend.Message{Kind: ulfmbackend.Notice}},
		{"agree", up(ulfmbackend.Repairs, errchan.Agree)},
		{"resolve", up(ulfmbackend.Errors, 0)},
		{"shrink", up(ulfmbackend.Repairs, errchan.Shrink)},
		{"revoke", &ulfmbackend.Message{Kind: ulfmbackend.Revoke}},
		{"split", up(ulfmbackend.Repairs, errchan.Split)},
		{"splitshared", up(ulfmbackend.Repairs, errchan.SplitShared)},
		{"cartcreate", up(ulfmbackend.Creations, errchan.CartCreate)},
		{"cartsub", up(ulfmbackend.Creations, errchan.CartSub)},
		{"graphcreate", up(ulfmbackend.Creations, errchan.GraphCreate)},
		{"merge", up(ulfmbackend.Creations, errchan.Merge)},
		{"agree", &ulfmbackend.Message{Kind: ulfmbackend.Decided, Stream: ulfmbackend.Repairs, Value: &ulfmbackend.Value{Calls: errchan.Agree}}},
		{"end", &ulfmbackend.Message{Kind: ulfmbackend.Up, Stream: ulfmbackend.Repairs, Value: &ulfmbackend.Value{Dead: []int{0}}}},
	}
	seen := map[string]int{}
	for i, m := range messages {
		seen[m.name]++
		plan, _, _, dup := wrapped(t, fmt.Sprintf("kill 0 in %s message %d", m.name, seen[m.name]))
		sent, box := 0, listen(dup[0])
		for _, m := range messages {
			tell(dup[0], box, m.msg)
			if len(plan.Killed()) == 0 {
				sent++
			}
		}
		require.Equal(t, i, sent, m.name)
		require.Equal(t, sent, listen(dup[1]).come)
	}
}

// A step is looked for in the named call.
func TestStep(t *testing.T) {
	for call, want := range map[int]int{0: 1, 1: 1, 2: 2, 3: 0} {
		text := "kill 0 in Gather step 2"
		if call > 0 {
			text += fmt.Sprint(" call ", call)
		}
		plan, side, bare, _ := wrapped(t, text)
		died := 0
		for i := 1; i <= 2; i++ {
			for r, c := range []transport.Comm{side, bare[1]} {
				x := &collective.Exchange{Name: "Gather"}
				x.Start(c, 0, -1-i, steps(r), new(done))
				other := &collective.Exchange{Name: "Scatter"}
				other.Start(c, 0, -11-i, steps(r), new(done))
			}
			if died == 0 && len(plan.Killed()) > 0 {
				died = i
			}
		}
		require.Equal(t, want, died, text)
	}
}

// steps sends from rank 0 to rank 1, three times.
type steps int

func (a steps) Step(k int, x *collective.Exchange) bool {
	if a == 0 {
		x.Send(1, nil)
	} else {
		x.Recv(0, nil)
	}
	return k < 2
}
