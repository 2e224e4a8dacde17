package mpicx

import (
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/local"
)

// Transport is the message layer that the build tags chose.
const Transport = "local"

// startTransport returns the sides of the world that live in this process.
func startTransport(ranks int, backend string) []transport.Comm {
	start := local.New
	if backend == backendULFM {
		start = local.NewMortal
	}
	sides := make([]transport.Comm, ranks)
	for i, side := range start(ranks) {
		sides[i] = side
	}
	return sides
}
