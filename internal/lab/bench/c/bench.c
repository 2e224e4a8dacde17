// The programs in C that mpicx is compared with on MPI. `bench ROW [BYTES]` under mpirun prints times in
// nanoseconds, one per line. Rows: see main.
#include "bench.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION >= 5
#include <mpi-ext.h>
#define ULFM 1
#endif

int rank, size;

double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

void print(double ns) {
	if (rank == 0) printf("%.0f\n", ns);
}

// The error channel of the paper's section III-B: a duplicate, and a receive on it.
static MPI_Comm comm_err;
static MPI_Request err_req;
static long long err_code;

static void open_channel(MPI_Comm comm) {
	MPI_Comm_dup(comm, &comm_err);
	MPI_Irecv(&err_code, 1, MPI_LONG_LONG, MPI_ANY_SOURCE, 0, comm_err, &err_req);
}

// wait is Future::wait: it waits for the user's request or an error.
static int wait_for(MPI_Request *r) {
	MPI_Request both[2] = {*r, err_req};
	int which;
	MPI_Waitany(2, both, &which, MPI_STATUS_IGNORE);
	*r = both[0];
	err_req = both[1];
	return which;
}

static void pingpong(int bytes) {
	char *buf = calloc(1, bytes);
	int trips = bytes > 100000 ? 100 : bytes > 10000 ? 1000 : 10000;
	open_channel(MPI_COMM_WORLD);
	for (int sample = -3; sample < 21; sample++) {
		double start = now();
		for (int i = 0; i < trips; i++) {
			MPI_Request r;
			for (int turn = 0; turn < 2; turn++) {
				if (rank == turn)
					MPI_Isend(buf, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &r);
				else
					MPI_Irecv(buf, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &r);
				wait_for(&r);
			}
		}
		if (sample >= 0) print((now() - start) / trips);
	}
	MPI_Cancel(&err_req);
	MPI_Wait(&err_req, MPI_STATUS_IGNORE);
	free(buf);
}

// blocking is pingpong with MPI's blocking calls, and no error channel.
static void blocking(int bytes) {
	char *buf = calloc(1, bytes);
	const int trips = 10000;
	for (int sample = -3; sample < 21; sample++) {
		double start = now();
		for (int i = 0; i < trips; i++) {
			for (int turn = 0; turn < 2; turn++) {
				if (rank == turn)
					MPI_Send(buf, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD);
				else
					MPI_Recv(buf, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			}
		}
		if (sample >= 0) print((now() - start) / trips);
	}
	free(buf);
}

// stream is OSU's bandwidth: windows of 64 messages, each answered by a short one. It prints the time of a
// message.
static void stream(int bytes) {
	const int windows = 200, window = 64;
	char *buf = calloc(window, bytes), answer[4];
	MPI_Request r[64];
	for (int sample = -3; sample < 21; sample++) {
		double start = now();
		for (int i = 0; i < windows; i++) {
			for (int k = 0; k < window; k++) {
				if (rank == 0)
					MPI_Isend(buf + k * bytes, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, r + k);
				else
					MPI_Irecv(buf + k * bytes, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, r + k);
			}
			MPI_Waitall(window, r, MPI_STATUSES_IGNORE);
			if (rank == 0)
				MPI_Recv(answer, sizeof answer, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			else
				MPI_Send(answer, sizeof answer, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
		}
		if (sample >= 0) print((now() - start) / (windows * window));
	}
	free(buf);
}

// transfer sends a message to rank 1. Its buffers were written before, except the receiver's if fresh.
static void transfer(int bytes, int fresh) {
	char *buf = malloc(bytes);
	memset(buf, 1, bytes);
	for (int sample = -3; sample < 21; sample++) {
		if (fresh && rank == 1) {
			free(buf);
			buf = malloc(bytes);
		}
		MPI_Barrier(MPI_COMM_WORLD);
		double took = now(), most;
		if (rank == 0)
			MPI_Send(buf, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
		else
			MPI_Recv(buf, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		took = now() - took;
		MPI_Reduce(&took, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
		if (sample >= 0) print(most);
	}
	free(buf);
}

// osu_barrier is OSU's benchmark of that name: the mean of 1,000 barriers after 200, over all ranks.
// With a channel, MPI_Waitany waits for the barrier or an error.
static void osu_barrier(int channel) {
	const int skipped = 200, times = 1000;
	if (channel) open_channel(MPI_COMM_WORLD);
	for (int sample = 0; sample < 5; sample++) {
		double mean = 0, sum;
		for (int i = 0; i < skipped + times; i++) {
			double start = now();
			if (channel) {
				MPI_Request r;
				MPI_Ibarrier(MPI_COMM_WORLD, &r);
				wait_for(&r);
			} else
				MPI_Barrier(MPI_COMM_WORLD);
			if (i >= skipped) mean += (now() - start) / times;
		}
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Reduce(&mean, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
		print(sum / size);
	}
	if (channel) {
		MPI_Cancel(&err_req);
		MPI_Wait(&err_req, MPI_STATUS_IGNORE);
	}
}

// tell tells all ranks which ranks failed, here only rank 0, and their codes.
static void tell(MPI_Comm comm, long long code) {
	int failed = rank == 0, index, count;
	MPI_Scan(&failed, &index, 1, MPI_INT, MPI_SUM, comm);
	count = index;
	MPI_Bcast(&count, 1, MPI_INT, size - 1, comm);
	long long *table = calloc(2 * count, sizeof *table), *result = calloc(2 * count, sizeof *result);
	if (failed) {
		table[2 * index - 2] = rank;
		table[2 * index - 1] = code;
	}
	MPI_Allreduce(table, result, 2 * count, MPI_LONG_LONG, MPI_MAX, comm);
	if (result[1] != code) abort();
	free(table);
	free(result);
}

// black duplicates, signals an error at rank 0, which all ranks get, and closes: the paper's protocol. It
// does not cancel sends, because MPI can't.
static void black(void) {
	MPI_Comm comm;
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	open_channel(comm);
	long long code = 666;
	MPI_Request *sends = malloc((size + 1) * sizeof *sends);
	int n = 0;
	if (rank == 0) {
		for (int dest = 1; dest < size; dest++) MPI_Issend(&code, 1, MPI_LONG_LONG, dest, 0, comm_err, &sends[n++]);
		MPI_Cancel(&err_req);
	}
	MPI_Wait(&err_req, MPI_STATUS_IGNORE);
	MPI_Waitall(n, sends, MPI_STATUSES_IGNORE);
	MPI_Barrier(comm_err);
	int ok = 1, all;
	MPI_Allreduce(&ok, &all, 1, MPI_INT, MPI_BAND, comm_err);
	if (!all) abort();
	tell(comm_err, code);
	free(sends);
	MPI_Comm_free(&comm_err);
	MPI_Comm_free(&comm);
}

#ifdef ULFM
// signal_on signals an error at rank 0 on comm, as in the paper's section III-C: revoke the communicator,
// shrink it, agree on whether it is corrupted, and tell which ranks failed. It returns the shrunk
// communicator.
static MPI_Comm signal_on(MPI_Comm comm) {
	MPI_Comm fresh;
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	long long code = 666, none;
	if (rank == 0) {
		MPIX_Comm_revoke(comm);
	} else {
		MPI_Request r;
		if (MPI_Irecv(&none, 1, MPI_LONG_LONG, 0, 1, comm, &r) == MPI_SUCCESS) MPI_Wait(&r, MPI_STATUS_IGNORE);
	}
	int ok = 1;
	MPIX_Comm_agree(comm, &ok);
	MPIX_Comm_shrink(comm, &fresh);
	if (!ok) abort();
	tell(fresh, code);
	MPI_Comm_free(&comm);
	return fresh;
}

// revoked is black with ULFM.
static void revoked(void) {
	MPI_Comm comm;
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	comm = signal_on(comm);
	MPI_Comm_free(&comm);
}

// told is revoked on an existing communicator.
static void told(void) {
	static MPI_Comm comm = MPI_COMM_NULL;
	if (comm == MPI_COMM_NULL) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	comm = signal_on(comm);
}

static void agree(void) {
	int flag = 1;
	MPIX_Comm_agree(MPI_COMM_WORLD, &flag);
}

// recover kills the last rank, and prints the time until all survivors know that, and the time until they
// have a working communicator.
static void recover(void) {
	MPI_Comm comm, fresh;
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	double when = 0, times[2], most[2];
	int in = 1, out, code = MPI_SUCCESS, flag = 1;
	for (int i = 0; i < 200 && code == MPI_SUCCESS; i++) {
		if (i == 100) { // the survivors know the time of the kill, up to a few microseconds
			if (rank == size - 1) when = now();
			MPI_Bcast(&when, 1, MPI_DOUBLE, size - 1, comm);
			if (rank == size - 1) {
				usleep(2000); // until the message has left
				kill(getpid(), SIGKILL);
			}
		}
		code = MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, comm);
	}
	when += 2e6;
	MPIX_Comm_revoke(comm); // for ranks that wait for other survivors
	MPIX_Comm_agree(comm, &flag);
	times[0] = now() - when;
	MPIX_Comm_shrink(comm, &fresh);
	MPI_Barrier(fresh);
	times[1] = now() - when;
	MPI_Allreduce(times, most, 2, MPI_DOUBLE, MPI_MAX, fresh);
	print(most[0]);
	print(most[1]);
	fflush(stdout);
}
#endif

static void signals(void (*once)(void)) {
	for (int sample = -5; sample < 31; sample++) {
		MPI_Barrier(MPI_COMM_WORLD);
		double start = now();
		once();
		if (sample >= 0) print(now() - start);
	}
}

// start prints the time of day when the first barrier ends.
static void start(void) {
	struct timespec t;
	MPI_Barrier(MPI_COMM_WORLD);
	clock_gettime(CLOCK_REALTIME, &t);
	if (rank == 0) printf("%lld\n", t.tv_sec * 1000000000LL + t.tv_nsec);
}

int main(int argc, char **argv) {
	const char *row = argc > 1 ? argv[1] : "";
	int provided;
	setvbuf(stdout, NULL, _IOFBF, 1 << 16); // otherwise mpirun would forward it, on a core that is needed
	setenv("OMPI_MCA_async_mpi_finalize", "1", 0);
	MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided); // like mpicx
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (strcmp(row, "pingpong") == 0 && argc > 2 && size == 2)
		pingpong(atoi(argv[2]));
	else if (strcmp(row, "blocking") == 0 && argc > 2 && size == 2)
		blocking(atoi(argv[2]));
	else if (strcmp(row, "stream") == 0 && argc > 2 && size == 2)
		stream(atoi(argv[2]));
	else if (strncmp(row, "transfer", 8) == 0 && argc > 2 && size == 2)
		transfer(atoi(argv[2]), strcmp(row, "transfer") != 0);
	else if (strcmp(row, "collectives") == 0 && argc > 2)
		collectives(atoi(argv[2]), argc - 3, argv + 3);
	else if (strcmp(row, "barrier") == 0 || strcmp(row, "barrier-ulfm") == 0)
		osu_barrier(0);
	else if (strcmp(row, "barrier-channel") == 0)
		osu_barrier(1);
	else if (strcmp(row, "signal") == 0)
		signals(black);
	else if (strcmp(row, "start") == 0)
		start();
#ifdef ULFM
	else if (strcmp(row, "signal-ulfm") == 0)
		signals(revoked);
	else if (strcmp(row, "told-ulfm") == 0)
		signals(told);
	else if (strcmp(row, "agree-ulfm") == 0)
		signals(agree);
	else if (strcmp(row, "recover") == 0)
		recover();
#endif
	else {
		fprintf(stderr, "no row \"%s\" for %d processes\n", row, size);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	MPI_Finalize();
	return 0;
}
