package mpicx

import (
	"github.com/mpicx/go-mpicx/internal/ledger"
	"github.com/mpicx/go-mpicx/internal/timeline"
)

// A watcher is told what happens to one rank: WithLogger, WithRuntimeTrace and WithTimeline each
// ask for one. Any goroutine calls its methods, which must not block for other ranks.
type watcher interface {
	// heard is told the events of the rank's error machine, in their order.
	heard(*ledger.Event)
	// happened is told other events.
	happened(timeline.Line)
	// blocked is called by a goroutine that is about to wait for what op names; over, when it
	// does not wait any more.
	blocked(op func() string) (over func())
}
