package node

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// Start ends what it can at once, and tells the end of the rest later.
func TestStart(t *testing.T) {
	c, _ := pair(false)
	require.True(t, c[0].TrySend(1, 1, 0, 0, []byte{1}))
	late := &request{done: make(chan struct{})}
	step := []transport.Request{
		{Peer: 0, Tag: 1, Buf: make([]byte, 1), Private: transport.Private{Kind: transport.Receiving}},
		{Peer: 0, Tag: 2, Buf: make([]byte, 1), Private: transport.Private{Kind: transport.Receiving}, Done: late},
		{Peer: 0, Tag: 3, Buf: []byte{3}, Private: transport.Private{Kind: transport.Sending}},
	}
	require.Equal(t, 2, c[1].Start(step))
	require.Equal(t, byte(1), step[0].Buf[0])
	require.False(t, late.ended())
	require.True(t, c[0].TrySend(1, 2, 0, 0, []byte{2}))
	c[1].Glance()
	require.True(t, late.ended())
	require.Equal(t, byte(2), step[1].Buf[0])
	r := recv(c[0], 1, 3)
	require.True(t, r.ended())
	require.Equal(t, byte(3), r.Buf[0])
}

// A goroutine that waits yields at once where another process of the job needs its core, and only
// there.
func TestCore(t *testing.T) {
	const toNobody, toAProcess, toAProgram = 300 * time.Nanosecond, 5 * time.Microsecond, 3 * time.Millisecond
	wait := func(yields ...time.Duration) []time.Duration { return yields } // for a packet, with yields of these durations
	met := wait(toAProcess)
	lonely := slices.Repeat([][]time.Duration{wait(toNobody)}, apart-1)
	for _, test := range []struct {
		name  string
		waits [][]time.Duration
		want  bool // polite
	}{
		{"alone", [][]time.Duration{wait(), wait(toNobody, toNobody)}, false},
		{"slow calls", [][]time.Duration{wait(1500 * time.Nanosecond)}, false},
		{"another program", [][]time.Duration{wait(toAProgram)}, false},
		{"a process that ran before, and did not send what came", [][]time.Duration{wait(toAProcess, toNobody), wait()}, false},
		{"met", slices.Concat([][]time.Duration{met}, lonely), true},
		{"met again: it counts from the last time", slices.Concat([][]time.Duration{met}, lonely, [][]time.Duration{met}, lonely), true},
		{"met, and apart again", slices.Concat([][]time.Duration{met}, lonely, [][]time.Duration{wait()}), false},
		{"met, and another program comes", [][]time.Duration{met, wait(toAProgram)}, false},
	} {
		for _, crowded := range []bool{false, true} {
			c := core{crowded: crowded}
			for _, yields := range test.waits {
				for _, y := range yields {
					c.yielded(y)
				}
				c.came()
			}
			assert.Equal(t, test.want || crowded, c.polite(), "%s, crowded %t", test.name, crowded)
		}
	}
}

// Of the transfers that are under way to a process, no two have one tag, though tags are used
// again.
func TestTagsOfTransfers(t *testing.T) {
	const length = 100_000
	e, c, _ := alone(t, true)
	fabric := e.fabric.(*memoryFabric)
	var n ends
	accept := func(id uint64) uint32 { // as the first again, but for those in use
		e.tags = transferTags - 1
		n.begin(c.Irecv, transport.Request{Peer: 2, Tag: 5, Buf: make([]byte, length)})
		e.came(2, header{kind: offer, to: world, tag: 5, length: length, id: id}, nil)
		return fabric.transfers[len(fabric.transfers)-1].tag
	}
	require.EqualValues(t, 1, accept(1))
	require.EqualValues(t, 2, accept(2))
	require.EqualValues(t, 3, accept(3))
	e.mu.Lock()
	e.ended(fabric.transfers[1].id, length, false)
	e.unlock()
	require.EqualValues(t, 2, accept(4))
	require.NoError(t, c.Failed())
}

// slow is a Completer that takes long, as the one of a reduction's message does.
type slow func()

func (s slow) Completed(*transport.Request) { s() }

// listening is a Listener that counts what it takes.
type listening struct {
	died
	taken int
}

func (l *listening) Take(int, []byte) { l.taken++ }

// A message of the error channel is not told while the end of a request is: the error that it
// brings may give the program buffers that the end still uses (P4). It is told directly afterwards,
// even if that goroutine ends.
func TestEndIsToldBeforeWhatFollows(t *testing.T) {
	for _, leave := range []func(){func() {}, runtime.Goexit} {
		c, _ := pair(false)
		l := new(listening)
		c[1].Listen(l)
		within, after := -1, -1
		over := make(chan struct{})
		end := func() {
			c[0].e.lock()
			c[0].tell(1, []byte{1})
			c[0].e.unlock()
			other := make(chan struct{})
			go func() {
				defer close(other)
				for range 10 {
					c[1].e.progress(1)
				}
			}()
			<-other
			within = l.taken
			leave()
		}
		go func() {
			defer close(over)
			defer func() { after = l.taken }()
			c[1].Irecv(&transport.Request{Peer: 0, Tag: 2, Buf: make([]byte, 8), Done: slow(end)})
			require.True(t, c[0].TrySend(1, 2, 0, 0, make([]byte, 8)))
			c[1].e.progress(1)
		}()
		<-over
		require.Equal(t, 0, within)
		require.Equal(t, 1, after)
	}
}
