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
	// Late returns the error that has ended the operation's epoch, or nil while it lasts.
	Late() error
	// Exchange begins the next exchange, on any goroutine. It must be called when the exchange
	// before has ended. then is called when the exchange has ended, soon if the communicator has an
	// error. then must not block.
	Exchange(a collective.Algorithm, then func(error))
	// Reserve says that the operation ends by an agreement. It is called next after Begin.
	Reserve()
	// Agree makes this rank's proposal to that agreement. then gets nil at all living ranks if all
	// have made one, otherwise an error at all. It must not block.
	Agree(then func(error))
	// End ends the future. It is the last call.
	End(err error)
}
