package hook

import (
	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// A Background is a collective operation of several exchanges, with work of its owner in
// between. It goes on while the program does something else, and belongs to the epoch in
// which it began: whatever its owner does after an error meets nothing of other epochs.
// A rank is not attending because of it, and is told no error by it, but in a Wait for
// its future.
type Background interface {
	Epoch() transport.Epoch
	// Exchange begins the next exchange, on any goroutine. Then is called when it has
	// ended, and must not block. If there has been an error of the communicator, that is
	// soon. Each exchange is begun once the one before has ended.
	Exchange(a collective.Algorithm, then func(error))
	// End ends the future. It is the last call.
	End(err error)
}

// BeginBackground begins a Background of so many exchanges on a *mpicx.Comm, in the order of
// the program's collective operations. If it is refused, it is nil, and the future says
// why. Package mpicx sets it.
var BeginBackground func(comm any, name string, exchanges int) (Background, *future.Future[struct{}])
