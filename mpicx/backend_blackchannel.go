package mpicx

import (
	"github.com/mpicx/go-mpicx/blackchannel"
	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// Backend is the error backend that the build tags chose.
const Backend = "blackchannel"

// openChannel opens the error channel of a communicator over a duplicate of it.
func openChannel(dup transport.Comm, client errchan.Client) errchan.Channel {
	return blackchannel.Open(dup, client)
}
