package mpicx

import (
	"github.com/mpicx/go-mpicx/internal/ledger"
	"github.com/mpicx/go-mpicx/internal/timeline"
)

// A watcher receives the events of one rank. WithLogger, WithRuntimeTrace and WithTimeline each ask
// for one. Its methods are called on any goroutine, and must not wait for other ranks.
type watcher interface {
	// heard receives the events of the rank's ledger, in order.
	heard(*ledger.Event)
	// happened receives all other events.
	happened(timeline.Line)
	// blocked is called by a goroutine that is about to wait in the operation that op names. The
	// goroutine calls over when it stops waiting.
	blocked(op func() string) (over func())
}
