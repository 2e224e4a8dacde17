package mpicx

import (
	"math"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// AnySource and AnyTag receive from any rank, and with any tag (MPI_ANY_SOURCE, MPI_ANY_TAG).
const (
	AnySource = -1
	AnyTag    = -1
)

var ( // the transport has the same values
	_ = [1]struct{}{AnySource - transport.AnySource: {}}
	_ = [1]struct{}{AnyTag - transport.AnyTag: {}}
)

// ProcNull is the rank of no process (MPI_PROC_NULL): the neighbour beyond the border of a
// grid. A send to it, or a receive or probe from it, completes at once, does not touch its
// buffer, and has the Status {ProcNull, AnyTag, 0}. Its value is none that rank-1 or rank-2
// yields by mistake: those are errors.
const ProcNull = math.MinInt32

// statusOfNobody is the Status of a receive from ProcNull.
var statusOfNobody = Status{ProcNull, AnyTag, 0}

// Status describes a message that was sent, received or probed (MPI_Status). Its Count is that
// of MPI_Get_count.
type Status struct {
	Source, Tag int
	Count       int // in elements of the operation's type
}

// Received is a value and the Status of the message that carried it.
type Received[T any] struct {
	Value  T
	Status Status
}

// endedFuture is a future that is done with a status.
type endedFuture struct {
	status Status
	future.Promise[Status]
}
