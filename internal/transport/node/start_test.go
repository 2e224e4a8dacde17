package node

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// A message that lies in the ring is received as its receive begins: nobody makes progress.
func TestAReceiveLooksForItsMessage(t *testing.T) {
	c, _ := pair(false)
	require.True(t, c[0].TrySend(1, 1, 0, 0, []byte{1}))
	require.True(t, c[0].TrySend(1, 2, 0, 0, []byte{2}))
	for _, tag := range []int{2, 1} {
		r := recv(c[1], 0, tag)
		require.True(t, r.ended())
		require.Equal(t, byte(tag), r.Buf[0])
	}
}

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
