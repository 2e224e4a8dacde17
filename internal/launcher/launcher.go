package launcher

import (
	"os"
	"slices"
	"strconv"
)

// launchers are the variables by which launchers tell a process of its job: Open
// MPI's mpirun; PMIx, so Slurm's srun --mpi=pmix as well; MPICH's and others' PMI.
var launchers = []string{"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_SIZE", "PMI_RANK", "PMI_FD", "PMI_PORT"}

// slurm has the number of processes that srun has started.
const slurm = "SLURM_STEP_NUM_TASKS"

// sizes are those that have the number of processes.
var sizes = []string{"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", slurm}

// Launched says whether this process has been started as one of a job.
func Launched() bool {
	_, n := Announced()
	return n > 1 || slices.ContainsFunc(launchers, func(name string) bool { return os.Getenv(name) != "" })
}

// Nested says whether what this process would start as a job of one machine would be inside of
// another job. It would not be if srun has started this process alone, as it does to run
// something on a node: with --mpi=pmix or pmi2 even that has the variables of a job.
func Nested() bool {
	_, n := Announced()
	return Launched() && (n > 1 || os.Getenv(slurm) != "1" || os.Getenv("OMPI_COMM_WORLD_SIZE") != "")
}

// Job names the job, as far as the launcher says; "": it does not.
func Job() string {
	if job := os.Getenv("PMIX_NAMESPACE"); job != "" {
		return job
	}
	if job := os.Getenv("SLURM_JOB_ID"); job != "" {
		return "slurm-" + job + "." + os.Getenv("SLURM_STEP_ID")
	}
	return ""
}

// Processes is how many a launcher has started, as far as it says; 0: none has. Without -tags mpi
// it is 0: a process then takes part in no job of mpirun.
func Processes() int {
	if !withMPI || !Launched() {
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
