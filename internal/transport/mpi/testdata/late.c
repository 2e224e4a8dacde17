// A library for LD_PRELOAD that ends the process at once if Open MPI fails a message because of a death.
// Open MPI itself ends it only if bytes of the message come or leave after that. make test-ulfm runs
// TestTransfersOfTheDead with it.
#include <mpi.h>
#include <mpi-ext.h>
#include <stdio.h>
#include <stdlib.h>

static MPI_Request agreements[1 << 10]; // the latest: these may fail
static unsigned begun;

int MPIX_Comm_iagree(MPI_Comm comm, int *flag, MPI_Request *r) {
	int code = PMPIX_Comm_iagree(comm, flag, r);
	agreements[begun++ % (1 << 10)] = *r;
	return code;
}

static int checked(int code) {
	int class;
	MPI_Error_class(code, &class);
	if (class == MPIX_ERR_PROC_FAILED) {
		fprintf(stderr, "a message has failed\n");
		abort();
	}
	return code;
}

int MPI_Test(MPI_Request *r, int *flag, MPI_Status *status) {
	int agrees = 0;
	for (int i = 0; i < 1 << 10; i++) agrees |= *r == agreements[i];
	int code = PMPI_Test(r, flag, status);
	return agrees ? code : checked(code);
}

int MPI_Testsome(int n, MPI_Request *requests, int *done, int *at, MPI_Status *status) {
	return checked(PMPI_Testsome(n, requests, done, at, status));
}
