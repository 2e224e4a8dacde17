package mpicx

import (
	"cmp"

	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/local"
)

// job is what this process has of a job.
type job struct {
	sides []transport.Comm // of the world, of the ranks that live here
	end   func() error     // waits for all processes
}

// goroutines returns a job all of whose ranks are goroutines of this process.
func goroutines(o *options, ranks int) *job {
	start := local.New
	if o.backend == backendULFM {
		start = local.NewMortal
	}
	j := &job{end: func() error { return nil }}
	for _, side := range start(cmp.Or(o.chosen, o.environment, ranks)) {
		j.sides = append(j.sides, side)
	}
	return j
}
