package hook

import (
	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// A Background is a collective operation of several exchanges, with work of its owner between them.
// It runs while the program does something else. It belongs to the epoch in which it began, so its
// exchanges after an error match nothing of other epochs. It does not make a rank attend. It tells
// the program of errors only in a Wait for its future.
type Background interface {
	Epoch() transport.Epoch
	// Exchange begins the next exchange, on any goroutine. It must be called when the exchange
	// before has ended. then is called when the exchange has ended, soon if the communicator has an
	// error. then must not block.
	Exchange(a collective.Algorithm, then func(error))
	// End ends the future. It is the last call.
	End(err error)
}
