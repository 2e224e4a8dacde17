package node

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/transport"
)

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
		e.mu.Lock()
		(*Sink)(e).Came(2, packet(header{kind: offer, to: world, tag: 5, length: length, id: id}, nil))
		e.unlock()
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
