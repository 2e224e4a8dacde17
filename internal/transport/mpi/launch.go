package mpi

import (
	"fmt"
	"strings"

	"github.com/mpicx/go-mpicx/internal/launcher"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// started describes how MPI has begun.
type started struct {
	version string
	size    int
	guest   bool // the program itself has begun it
	threads threads
	mortal  bool // the others survive the death of a process
	hasULFM bool // it can be started as mortal
}

// threads says from which threads MPI can be called.
type threads int

const (
	finalized threads = iota - 1 // not at all
	single
	funneled
	serialized
	multiple
)

func (t threads) String() string {
	return [...]string{"MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED", "MPI_THREAD_SERIALIZED", "MPI_THREAD_MULTIPLE"}[t]
}

// check returns an error if this MPI cannot be used.
func (s started) check(mortal bool) error {
	var text string
	switch name, n := launcher.Announced(); {
	case s.threads == finalized:
		text = "the program has ended MPI, which can't be begun again"
	case s.threads < serialized && s.guest:
		text = fmt.Sprintf("the program has begun MPI with %v, expected %v or %v, since goroutines call it from several threads: begin it with MPI_Init_thread, or not at all", s.threads, serialized, multiple)
	case s.threads < serialized:
		text = fmt.Sprintf("%s provides %v, expected %v or more, since goroutines call it from several threads", s.version, s.threads, serialized)
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

// nameOf returns the name and version of an MPI from its description, which continues with how
// it was built.
func nameOf(library string) string {
	name := library[:strings.IndexAny(library+"\n", ",\n")]
	return strings.Join(strings.Fields(strings.Replace(name, "Version:", "", 1)), " ")
}
