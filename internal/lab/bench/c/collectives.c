// MPI's own collectives, the counterpart of collectives.go.
#include "bench.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double *sends, *recvs;

// call runs an operation with e doubles per rank.
static void call(const char *op, int e, int root) {
	const MPI_Comm c = MPI_COMM_WORLD;
	const int part = e > size ? e / size : 1; // of Alltoall and ReduceScatter
	if (strcmp(op, "Barrier") == 0)
		MPI_Barrier(c);
	else if (strcmp(op, "Bcast") == 0)
		MPI_Bcast(sends, e, MPI_DOUBLE, root, c);
	else if (strcmp(op, "Reduce") == 0)
		MPI_Reduce(sends, recvs, e, MPI_DOUBLE, MPI_SUM, root, c);
	else if (strcmp(op, "Allreduce") == 0)
		MPI_Allreduce(sends, recvs, e, MPI_DOUBLE, MPI_SUM, c);
	else if (strcmp(op, "Allgather") == 0)
		MPI_Allgather(sends, e, MPI_DOUBLE, recvs, e, MPI_DOUBLE, c);
	else if (strcmp(op, "Gather") == 0)
		MPI_Gather(sends, e, MPI_DOUBLE, recvs, e, MPI_DOUBLE, root, c);
	else if (strcmp(op, "Scatter") == 0)
		MPI_Scatter(sends, e, MPI_DOUBLE, recvs, e, MPI_DOUBLE, root, c);
	else if (strcmp(op, "Alltoall") == 0)
		MPI_Alltoall(sends, part, MPI_DOUBLE, recvs, part, MPI_DOUBLE, c);
	else if (strcmp(op, "ReduceScatter") == 0)
		MPI_Reduce_scatter_block(sends, recvs, part, MPI_DOUBLE, MPI_SUM, c);
	else if (strcmp(op, "Scan") == 0)
		MPI_Scan(sends, recvs, e, MPI_DOUBLE, MPI_SUM, c);
	else {
		fprintf(stderr, "no collective \"%s\"\n", op);
		MPI_Abort(c, 2);
	}
}

static double timed(const char *op, int e, int times) {
	MPI_Barrier(MPI_COMM_WORLD);
	double start = now();
	for (int i = 0; i < times; i++) call(op, e, i % 2 * (size - 1));
	MPI_Barrier(MPI_COMM_WORLD);
	return (now() - start) / times;
}

// settle has the processes wait for each other for 0.2 s: the system may have begun them on one core.
static void settle(void) {
	double start = now();
	for (int more = 1; more;) {
		more = now() - start < 2e8;
		MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
		MPI_Barrier(MPI_COMM_WORLD);
	}
}

// collectives prints samples of each cell, "OPERATION:BYTES".
void collectives(int samples, int cells, char **names) {
	settle();
	for (int k = 0; k < cells; k++) {
		const char *op = strtok(names[k], ":");
		int e = atoi(strtok(NULL, ":")) / sizeof(double);
		int n = size * (e + 1);
		sends = malloc(n * sizeof(double));
		recvs = malloc(n * sizeof(double));
		for (int i = 0; i < n; i++) sends[i] = recvs[i] = 1;
		timed(op, e, 2);
		double often = 3e6 / timed(op, e, 2);
		int times = 1 + (often < 2000 ? often : 2000);
		MPI_Bcast(&times, 1, MPI_INT, 0, MPI_COMM_WORLD);
		for (int i = 0; i < samples; i++) print(timed(op, e, times));
		free(sends);
		free(recvs);
	}
}
