package mpicx

import (
	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// ErrCancelled is the error of a receive or probe that Cancel has cancelled (MPI_Test_cancelled).
// Test for it with errors.Is.
var ErrCancelled error = transport.ErrCancelled

// Cancel cancels a receive or probe that no message has matched yet (MPI_Cancel), and says
// whether it did. Then f ends with ErrCancelled, its buffer is free, and messages go to other
// receives. Otherwise f is matched or done, and ends as if Cancel had not been called. Other
// operations, such as sends, are never cancelled.
func Cancel[T any](f *future.Future[T]) bool {
	if f == nil {
		panic("mpicx: Cancel: nil future, expected the future of a receive or probe")
	}
	k, ok := waiting.Of(f).Kept().(interface{ cancel(*waiting.Cell) bool })
	return ok && k.cancel(waiting.Of(f))
}

// cancel cancels the receive or probe with this future. The operation is told first, while it
// can't end, so that it does not reuse its request.
func (k *keeper) cancel(cell *waiting.Cell) bool {
	var found *transport.Request
	k.t.EachPending(func(r *transport.Request) {
		if o, ok := r.Done.(cancellable); ok && o.cell() == cell {
			o.cancelling()
			found = r
		}
	})
	return found != nil && k.t.Cancel(found)
}

// A cancellable is a receive or probe of the program.
type cancellable interface {
	operation
	// cancelling says that the operation's request may be cancelled, even after its end, so it
	// must not be reused. It is called while the operation can't end.
	cancelling()
}
