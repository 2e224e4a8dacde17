// A library for LD_PRELOAD that has MPI_Testsome do what Open MPI 5.0.7 does if two requests fail at nearly
// the same time: it frees both, and lists one. make test-ulfm runs TestTransfersOfTheDead with it.
#include <mpi.h>

int MPI_Testsome(int count, MPI_Request *requests, int *done, int *at, MPI_Status *status) {
	int code = PMPI_Testsome(count, requests, done, at, status);
	int last = *done - 1;
	if (code != MPI_SUCCESS && *done != MPI_UNDEFINED && last > 0 && status[last].MPI_ERROR != MPI_SUCCESS && requests[at[last]] == MPI_REQUEST_NULL)
		*done = last;
	return code;
}
