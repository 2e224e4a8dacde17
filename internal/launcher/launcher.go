package launcher

import (
	"os"
	"strconv"
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
	_, n := Announced()
	return n > 1
}

// Processes is how many a launcher has started, as far as it says; 0: none has.
func Processes() int {
	if !Launched() {
		return 0
	}
	_, n := Announced()
	return max(n, 1)
}

// Announced returns the number of processes that the launcher says, and the variable
// in which it does.
func Announced() (name string, n int) {
	for _, name := range sizes {
		if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
			return name, n
		}
	}
	return "", 0
}
