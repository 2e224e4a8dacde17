package node

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// ends counts requests that have ended.
type ends struct{ begun, ended int }

func (n *ends) Completed(*transport.Request) { n.ended++ }

func (n *ends) begin(begin func(*transport.Request), r transport.Request) {
	n.begun++
	r.Done = n
	begin(&r)
}

// beginAll has one request of each kind under way.
func (n *ends) beginAll(c *comm) {
	bytes := func(length int) []byte { return make([]byte, length) }
	for peer := range c.Size() {
		n.begin(c.Irecv, transport.Request{Peer: peer, Tag: 1, Buf: bytes(100)})
		n.begin(c.Isend, transport.Request{Peer: peer, Tag: 2, Buf: bytes(10), Mode: transport.Synchronous})
		n.begin(c.Isend, transport.Request{Peer: peer, Tag: 2, Buf: bytes(20_000)})
	}
	n.begin(c.Irecv, transport.Request{Peer: transport.AnySource, Tag: 3, Take: true})
	n.begin(c.Irecv, transport.Request{Peer: transport.AnySource, Tag: 4, Alloc: bytes})
	n.begin(c.Probe, transport.Request{Peer: transport.AnySource, Tag: 5})
}

// A packet that no process sends ends all requests, including later ones, with an error that says
// which bytes came.
func TestGarbageEndsAll(t *testing.T) {
	for _, test := range []struct {
		name string
		h    header
		from int
		want string
	}{
		{"part of what is elsewhere", header{kind: part, transferTag: 1, id: 8, length: 8}, 2, "bytes of transfer 1, which is not under way"},
		{"part of no transfer", header{kind: part, transferTag: 9, id: math.MaxUint64, length: 8}, 1, "bytes of transfer 9, which is not under way"},
		{"listener's, longer than memory", header{kind: offer, to: world, listener: true, length: longestMessage}, 1, "bytes, where there are"},
		{"for a new slice, longer than memory", header{kind: offer, to: world, tag: 3, length: longestMessage}, 1, "bytes, where there are"},
		{"for an Alloc, longer than memory", header{kind: offer, to: world, tag: 4, length: longestMessage}, 1, "bytes, where there are"},
		{"longer than addresses", header{kind: offer, to: world, tag: 1, length: math.MaxInt}, 1, fmt.Sprintf("a message of %d bytes, expected 0 to", math.MaxInt)},
		{"more than was offered", header{kind: accept, to: world, id: 3, transferTag: 7, length: 1 << 30}, 1, "1073741824 bytes accepted of offer 3, expected 10 by process 1"},
		{"another's offer", header{kind: accept, to: world, id: 3, transferTag: 7, length: 10}, 2, "10 bytes accepted of offer 3, expected 10 by process 1"},
		{"read what it can't", header{kind: pulled, to: world, id: 3, transferTag: 7, length: 10}, 1, "bytes read of offer 3, which does not say where"},
		{"read nothing", header{kind: pulled, to: world, id: 9, transferTag: 7, length: 10}, 1, "bytes read of offer 9, which does not say where"},
		{"a reminder of no collective call", header{kind: reminder, to: world, tag: 5}, 1, "a reminder of tag 5"},
		{"dead, where nobody dies", header{kind: dead, to: world}, 1, "kind 12, where nobody dies"},
		{"credit for more than may be ahead", header{kind: credit, id: 70_001}, 1, "credit for 70001 messages of 0 bytes, expected at most 70000"},
	} {
		t.Run(test.name, func(t *testing.T) {
			e, c, _ := alone(t, false)
			var n ends
			n.beginAll(c)
			e.came(test.from, test.h, nil)
			require.Equal(t, n.begun, n.ended)
			require.ErrorContains(t, c.Failed(), test.want)
			require.ErrorContains(t, c.Failed(), "garbage from process ")
			n.beginAll(c)
			require.Equal(t, n.begun, n.ended)
		})
	}
}

// A message to a communicator from a process that is not a member is an error, even if it came
// before the communicator was made.
func TestGarbageFromOutside(t *testing.T) {
	for _, test := range []struct {
		early bool
		h     header
		want  string
	}{
		{false, header{kind: whole, tag: 1}, "a message to a communicator that it is not in"},
		{true, header{kind: whole, tag: 1}, "a message to a communicator that it is not in"},
		{false, header{kind: reminder, tag: transport.CollectiveTag(1)}, "a reminder on a communicator that it is not in"},
		{false, header{kind: gone}, "kind 11 on a communicator that it is not in"},
	} {
		e, c, _ := alone(t, false)
		name := transport.Name{Seq: 1}
		come := func() {
			test.h.to = world.child(name)
			e.came(2, test.h, nil)
		}
		if test.early {
			come()
		}
		_, err := c.Sub(name, []int{0, 1})
		require.NoError(t, err)
		if !test.early {
			come()
		}
		require.ErrorContains(t, c.Failed(), test.want)
	}
}

// A neighbour that dies while it writes garbage takes nobody along.
func TestGarbageOfTheDead(t *testing.T) {
	e, c, from := alone(t, true)
	var n ends
	n.begin(c.Irecv, transport.Request{Peer: 1, Tag: 1, Buf: make([]byte, 1)})
	for i := range from[1] {
		from[1][i] = 0xAA
	}
	e.mu.Lock()
	e.lastOf(1)
	e.died(1)
	e.unlock()
	require.NoError(t, c.Failed())
	require.Equal(t, 1, n.ended)
}

// FuzzPackets has a process in the middle of everything take any packets, and find
// anything in the memory it shares: there is no panic, and if there is an error, all
// requests have ended. Each step is a byte that says what comes, and what that needs.
func FuzzPackets(f *testing.F) {
	defer func(before func() int) { installed = before }(installed)
	installed = func() int { return 1 << 12 }

	step := func(of byte, packet []byte) []byte { return append([]byte{of, byte(len(packet))}, packet...) }
	scribble := func(at uint16, w uint64) []byte {
		return binary.NativeEndian.AppendUint64(binary.NativeEndian.AppendUint16([]byte{3}, at), w)
	}
	for _, h := range headers() {
		h.to, h.id, h.transferTag, h.epoch = world, 3, 1, 0
		f.Add(false, step(1, packet(h, nil)))
		f.Add(true, step(2, packet(h, nil)))
	}
	message := func(h header) []byte { return step(1, packet(h, nil)) }
	f.Add(true, append(message(header{kind: offer, to: world, tag: 1, id: 1, length: 90}), message(header{kind: part, transferTag: 1, length: 90, id: 50})...))
	f.Add(false, scribble(1, 1<<63))
	f.Add(false, append(scribble(1, 49), scribble(2, 57)...))
	f.Fuzz(func(t *testing.T, mortal bool, script []byte) {
		e, c, from := alone(t, mortal)
		var n ends
		n.beginAll(c)
		for len(script) > 2 && e.err == nil {
			of, length := script[0], int(script[1])
			script = script[2:]
			if of%4 == 3 && len(script) >= 9 {
				memory := from[of/4%2]
				at := (length | int(script[0])<<8) % (len(memory) / 64)
				copy(memory[at*64:], script[1:9])
				script = script[9:]
				e.progress(1)
				continue
			}
			length = min(length, len(script))
			e.mu.Lock()
			(*Sink)(e).Came(int(of%4)%3, script[:length])
			e.unlock()
			script = script[length:]
			e.progress(1)
		}
		if e.err != nil {
			require.Equal(t, n.begun, n.ended, "%v", e.err)
		}
	})
}
