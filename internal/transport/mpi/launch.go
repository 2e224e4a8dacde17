package mpi

import (
	"fmt"
	"strings"

	"github.com/mpicx/go-mpicx/internal/launcher"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// checkLaunch sees whether the launcher and MPI know each other: else each process
// is alone.
func checkLaunch(size int, version string) error {
	name, n := launcher.Announced()
	if size != 1 || n <= 1 {
		return nil
	}
	return &transport.LibraryError{Call: "MPI_Init_thread", Text: fmt.Sprintf(
		"a launcher has started %d processes (%s), but each is alone in its MPI_COMM_WORLD: this program was built with %s, start it with that one's mpirun, or with srun --mpi=pmix or pmi2, whichever that was built for",
		n, name, version)}
}

// noULFM says why processes that die can't be survived.
func noULFM(version string, hasULFM bool) error {
	text := version + " has no ULFM, which -tags ulfm needs under a launcher: take Open MPI 5, or build without the tag"
	if hasULFM {
		text = "started without ULFM, which -tags ulfm needs: mpirun --with-ft ulfm"
	}
	return &transport.LibraryError{Call: "MPI_Init_thread", Text: text}
}

// nameOf returns the name and the version of an MPI: what it says of itself goes on with
// how it was built.
func nameOf(library string) string {
	name := library[:strings.IndexAny(library+"\n", ",\n")]
	return strings.Join(strings.Fields(strings.Replace(name, "Version:", "", 1)), " ")
}
