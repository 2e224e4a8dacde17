package exact

import (
	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
)

// Allreduce merges send of all ranks, element by element, into recv, which may be send. All ranks
// get the same. It is collective, like [mpicx.Allreduce].
func Allreduce(c *mpicx.Comm, send, recv []Sum) *future.Future[struct{}] {
	for i := range send {
		send[i].carry()
	}
	return mpicx.Allreduce(c, words(send), words(recv), mpicx.Sum)
}
