// A library for LD_PRELOAD that has what Open MPI 5.0.7 does at rare moments happen always. make test-ulfm
// runs TestTransfersOfTheDead with it.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 1 << 16 };
static MPI_Request transfers[MOST]; // receives from one process that are under way
static int count;

int MPI_Irecv(void *buffer, int n, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request *r) {
	int code = PMPI_Irecv(buffer, n, type, source, tag, comm, r);
	if (code == MPI_SUCCESS && source != MPI_ANY_SOURCE && count < MOST) transfers[count++] = *r;
	return code;
}

// ended: this process ends if a receive that has failed was freed, as when its bytes come after all.
static void ended(MPI_Request before, MPI_Request after, int code) {
	for (int i = 0; i < count && after == MPI_REQUEST_NULL; i++)
		if (transfers[i] == before) {
			if (code != MPI_SUCCESS) {
				fprintf(stderr, "a receive that has failed was freed\n");
				abort();
			}
			transfers[i] = transfers[--count];
		}
}

int MPI_Test(MPI_Request *r, int *flag, MPI_Status *status) {
	MPI_Request before = *r;
	int code = PMPI_Test(r, flag, status);
	ended(before, *r, code);
	return code;
}

// If two requests fail at nearly the same time, it frees both, and lists one.
int MPI_Testsome(int n, MPI_Request *requests, int *done, int *at, MPI_Status *status) {
	MPI_Request before[n];
	for (int i = 0; i < n; i++) before[i] = requests[i];
	int code = PMPI_Testsome(n, requests, done, at, status);
	if (*done == MPI_UNDEFINED) return code;
	for (int i = 0; i < *done; i++) ended(before[at[i]], requests[at[i]], code == MPI_SUCCESS ? code : status[i].MPI_ERROR);
	int last = *done - 1;
	if (code != MPI_SUCCESS && last > 0 && status[last].MPI_ERROR != MPI_SUCCESS && requests[at[last]] == MPI_REQUEST_NULL)
		*done = last;
	return code;
}
