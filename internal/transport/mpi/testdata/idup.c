// MPI_Comm_idup while a process dies: Open MPI 5.0.7 aborts survivors ("free(): invalid pointer")
// or never ends it. So -tags native makes its communicators by MPIX_Comm_shrink.
// mpicc idup.c && mpirun --with-ft ulfm -n 4 a.out
#include <mpi.h>
#include <mpi-ext.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
	int rank, level, done = 0, code = MPI_SUCCESS;
	setenv("OMPI_MCA_async_mpi_finalize", "1", 0);
	MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level);
	MPI_Comm comm, made[3];
	MPI_Request request[3];
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	MPI_Comm_rank(comm, &rank);
	MPI_Barrier(comm);
	if (rank == 1) raise(SIGKILL);
	for (int i = 0; i < 3; i++) MPI_Comm_idup(comm, &made[i], &request[i]);
	double begun = MPI_Wtime();
	for (int i = 0; i < 3; i++)
		for (done = 0; !done && code == MPI_SUCCESS && MPI_Wtime() - begun < 5;) code = MPI_Test(&request[i], &done, MPI_STATUS_IGNORE);
	printf("rank %d: code %d, %s\n", rank, code, done || code ? "it has ended" : "it has not ended after 5 s");
	fflush(stdout);
	MPI_Abort(MPI_COMM_WORLD, 0);
}
