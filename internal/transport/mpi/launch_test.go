package mpi

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// An MPI that cannot be used is an error that names it, and what is needed.
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
		{"no threads", started{version: "some MPI", size: 2, threads: funneled}, false, "", "some MPI provides MPI_THREAD_FUNNELED, expected MPI_THREAD_SERIALIZED or more"},
		{"the program's, without threads", started{size: 2, guest: true}, false, "", "the program has begun MPI with MPI_THREAD_SINGLE, expected MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE"},
		{"ended", started{threads: finalized}, false, "", "the program has ended MPI"},
		{"another launcher", started{size: 1, threads: serialized}, false, "4", "a launcher has started 4 processes (PMI_SIZE), but each is alone"},
		{"no ULFM", started{version: "some MPI", size: 2, threads: serialized}, true, "", "some MPI has no ULFM, which -tags ulfm needs"},
		{"ULFM is off", started{size: 2, threads: serialized, hasULFM: true}, true, "", "mpirun --with-ft ulfm"},
		{"fit", started{size: 2, threads: serialized}, false, "2", ""},
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

// An MPI is named by its name and version, whatever else its description says.
func TestNameOf(t *testing.T) {
	for library, want := range map[string]string{
		"Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4, repo rev: v4.1.4, May 26, 2022":                     "Open MPI v4.1.4",
		"MPICH Version:\t4.0.2\nMPICH Release date:\tThu Apr  7 12:34:45 CDT 2022\nMPICH Device:\tch4:ofi\n":         "MPICH 4.0.2",
		"MPICH Version:      4.3.0\nMPICH Release date: Mon Feb  3 09:09:47 AM CST 2025\nMPICH ABI:          17:0:5": "MPICH 4.3.0",
		"MPICH 5": "MPICH 5",
		"":        "",
	} {
		require.Equal(t, want, nameOf(library))
	}
}
