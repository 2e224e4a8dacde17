//go:build mpi

package mpi

import (
	"fmt"
	"os"
	"strconv"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// launchers are the variables by which launchers tell a process of its job: Open
// MPI's mpirun; PMIx, so Slurm's srun --mpi=pmix as well; MPICH's and others' PMI.
var launchers = []string{"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_SIZE", "PMI_RANK", "PMI_FD", "PMI_PORT"}

// sizes are those that have the number of processes.
var sizes = []string{"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}

// Launched says whether this process has been started as one of a job.
func Launched() bool {
	for _, name := range launchers {
		if os.Getenv(name) != "" {
			return true
		}
	}
	_, n := announced()
	return n > 1
}

// Processes is how many a launcher has started, as far as it says; 0: none has.
func Processes() int {
	if !Launched() {
		return 0
	}
	_, n := announced()
	return max(n, 1)
}

// announced returns the number of processes that the launcher says, and where.
func announced() (name string, n int) {
	for _, name := range sizes {
		if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
			return name, n
		}
	}
	return "", 0
}

// checkLaunch sees whether the launcher and MPI know each other: else each process
// is alone.
func checkLaunch(size int) error {
	name, n := announced()
	if size != 1 || n <= 1 {
		return nil
	}
	return &transport.LibraryError{Call: "MPI_Init_thread", Text: fmt.Sprintf(
		"a launcher has started %d processes (%s), but each is alone in its MPI_COMM_WORLD: this program was built with %s, start it with that one's mpirun, or with srun --mpi=pmix or pmi2, whichever that was built for",
		n, name, library())}
}

// noULFM says why processes that die can't be survived.
func noULFM() error {
	text := library() + " has no ULFM, which -tags ulfm needs under a launcher: take Open MPI 5, or build without the tag"
	if hasULFM {
		text = "started without ULFM, which -tags ulfm needs: mpirun --with-ft ulfm"
	}
	return &transport.LibraryError{Call: "MPI_Init_thread", Text: text}
}
