package mpi

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// An MPI that is not what the program needs is an error that names it, and what would do.
func TestUnfitLibrary(t *testing.T) {
	for _, name := range []string{"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"} {
		t.Setenv(name, "")
	}
	for _, test := range []struct {
		name    string
		started started
		mortal  bool
		tasks   string
		want    string
	}{
		{"no threads", started{size: 2}, false, "", "provides less than MPI_THREAD_SERIALIZED"},
		{"another launcher", started{size: 1, serialized: true}, false, "4", "a launcher has started 4 processes (PMI_SIZE), but each is alone"},
		{"no ULFM", started{version: "some MPI", size: 2, serialized: true}, true, "", "some MPI has no ULFM, which -tags ulfm needs"},
		{"ULFM is off", started{size: 2, serialized: true, hasULFM: true}, true, "", "mpirun --with-ft ulfm"},
		{"fit", started{size: 2, serialized: true}, false, "2", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("PMI_SIZE", test.tasks)
			err := test.started.check(test.mortal)
			if test.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, test.want)
			}
		})
	}
}
