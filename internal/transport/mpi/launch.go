package mpi

import (
	"fmt"

	"github.com/mpicx/go-mpicx/internal/launcher"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// started is how MPI has begun.
type started struct {
	version    string
	size       int
	serialized bool // it may be called from several threads, one at a time
	mortal     bool // a process that dies does not take the others along
	hasULFM    bool // it can be started so
}

// check sees whether this is an MPI that will do.
func (s started) check(mortal bool) error {
	text := ""
	switch name, n := launcher.Announced(); {
	case !s.serialized:
		text = s.version + " can't be called from several threads, one at a time: it provides less than MPI_THREAD_SERIALIZED"
	case s.size == 1 && n > 1: // the launcher and MPI do not know each other
		text = fmt.Sprintf("a launcher has started %d processes (%s), but each is alone in its MPI_COMM_WORLD: this program was built with %s, start it with that one's mpirun, or with srun --mpi=pmix or pmi2, whichever that was built for",
			n, name, s.version)
	case mortal && !s.mortal && s.hasULFM:
		text = "started without ULFM, which -tags ulfm needs: mpirun --with-ft ulfm"
	case mortal && !s.mortal:
		text = s.version + " has no ULFM, which -tags ulfm needs under a launcher: take Open MPI 5, or build without the tag"
	default:
		return nil
	}
	return &transport.LibraryError{Call: "MPI_Init_thread", Text: text}
}
