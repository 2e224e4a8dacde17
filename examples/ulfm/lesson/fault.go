package lesson

import (
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/inject"
)

// A Fault says where a rank of the world dies: in which step of the program, and at which of its
// points.
type Fault struct {
	Rank, Step int
	Point      string
}

// Here is a point where ranks may die: the calling rank dies if f says so.
func (f Fault) Here(world *mpicx.Comm, step int, point string) {
	if f == (Fault{world.Rank(), step, point}) {
		inject.Die(world)
	}
}

// Faults are the faults of one run.
type Faults []Fault

// Here is a point where ranks may die: the calling rank dies if a fault says so.
func (fs Faults) Here(world *mpicx.Comm, step int, point string) {
	for _, f := range fs {
		f.Here(world, step, point)
	}
}
