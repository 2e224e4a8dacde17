package mpicx

import (
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/local"
)

// Transport is the message layer that the build tags chose.
const Transport = "local"

// startTransport returns the sides of the world that live in this process.
func startTransport(ranks int) []transport.Comm {
	sides := make([]transport.Comm, ranks)
	for i, side := range local.New(ranks) {
		sides[i] = side
	}
	return sides
}
