// What the transport needs of MPI, as functions that use no type or macro of it:
// Go sees integers, bytes and this struct. All but mx_error are called under one
// lock (MPI_THREAD_SERIALIZED).
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	MX_PACKET = 8192 + 64, // bytes of the longest packet
	MX_RING = 32,          // receives of packets that are posted
	MX_PACKET_TAG = 0,     // bodies have others
	MX_REAP = 256,         // requests looked at in one go
};

// What mx_poll tells of.
enum { MX_CAME = 1, MX_BODY = 2 };

typedef struct {
	int kind;
	int source;     // of a packet
	int64_t length; // of it, or of a body that has come
	void *bytes;    // of it, until the next mx_poll
	uint64_t id;    // of a body
	int code;       // MPI's, of an error
} mx_event;

static MPI_Comm mx_wire, mx_bye;
static int mx_rank, mx_size;

// Packets that others send.
static char *mx_in[MX_RING];
static MPI_Request mx_in_request[MX_RING];
static int mx_in_next, mx_in_taken; // the next to come, and how many before it are to be posted again

// A growing list of requests and what they are for.
typedef struct {
	MPI_Request *request;
	uint64_t *what; // a packet's bytes, or a body's id
	int *done;
	int count, room;
} mx_list;

static mx_list mx_out, mx_bodies;
static char **mx_free; // buffers of packets that have left
static int mx_free_count, mx_free_room;

static void *mx_grow(void *p, size_t size) {
	p = realloc(p, size);
	if (p == NULL) abort();
	return p;
}

static MPI_Request *mx_add(mx_list *l, uint64_t what) {
	if (l->count == l->room) {
		l->room = l->room ? 2 * l->room : 64;
		l->request = mx_grow(l->request, l->room * sizeof *l->request);
		l->what = mx_grow(l->what, l->room * sizeof *l->what);
		l->done = mx_grow(l->done, l->room * sizeof *l->done);
	}
	l->what[l->count] = what;
	return &l->request[l->count++];
}

// mx_reap drops those of the first requests that are done, and stores what they
// were for, and how long they were.
static MPI_Status mx_status[MX_REAP];

static int mx_reap(mx_list *l, uint64_t *what, int *lengths, int first, int *reaped) {
	*reaped = 0;
	if (first > l->count) first = l->count;
	if (first <= 0) return MPI_SUCCESS;
	int n, code = MPI_Testsome(first, l->request, &n, l->done, mx_status);
	if (n == MPI_UNDEFINED || n <= 0) return code;
	for (int i = 0; i < n; i++) {
		what[i] = l->what[l->done[i]];
		MPI_Get_count(&mx_status[i], MPI_BYTE, &lengths[i]);
	}
	int kept = 0;
	for (int i = 0; i < l->count; i++)
		if (l->request[i] != MPI_REQUEST_NULL) {
			l->request[kept] = l->request[i];
			l->what[kept++] = l->what[i];
		}
	l->count = kept;
	*reaped = n;
	return code;
}

static void mx_error(int code, char *text, int room) {
	char all[MPI_MAX_ERROR_STRING];
	int n = 0;
	if (MPI_Error_string(code, all, &n) != MPI_SUCCESS) n = snprintf(all, sizeof all, "error %d", code);
	snprintf(text, room, "%.*s", n, all);
}

static int mx_post(int i) {
	return MPI_Irecv(mx_in[i], MX_PACKET, MPI_BYTE, MPI_ANY_SOURCE, MX_PACKET_TAG, mx_wire, &mx_in_request[i]);
}

// mx_start begins. Provided is less than asked if MPI can't be called from several
// threads, one at a time.
static int mx_start(int *rank, int *size, int *enough, int *crowded, int cores) {
	int begun, provided, code, local, all;
	MPI_Comm node;
	MPI_Initialized(&begun);
	if (begun)
		code = MPI_Query_thread(&provided);
	else
		code = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided);
	*enough = provided >= MPI_THREAD_SERIALIZED;
	if (code != MPI_SUCCESS || !*enough) return code;
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	if ((code = MPI_Comm_dup(MPI_COMM_WORLD, &mx_wire)) != MPI_SUCCESS) return code;
	if ((code = MPI_Comm_dup(MPI_COMM_WORLD, &mx_bye)) != MPI_SUCCESS) return code;
	MPI_Comm_set_errhandler(mx_wire, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(mx_bye, MPI_ERRORS_RETURN);
	MPI_Comm_rank(mx_wire, &mx_rank);
	MPI_Comm_size(mx_wire, &mx_size);
	*rank = mx_rank;
	*size = mx_size;
	if ((code = MPI_Comm_split_type(mx_bye, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node)) != MPI_SUCCESS) return code;
	MPI_Comm_size(node, &local);
	MPI_Comm_free(&node);
	local = local > cores;
	if ((code = MPI_Allreduce(&local, &all, 1, MPI_INT, MPI_MAX, mx_bye)) != MPI_SUCCESS) return code;
	*crowded = all;
	for (int i = 0; i < MX_RING; i++) {
		mx_in[i] = mx_grow(NULL, MX_PACKET);
		if ((code = mx_post(i)) != MPI_SUCCESS) return code;
	}
	return MPI_SUCCESS;
}

// mx_send sends a packet of a head and a rest, whose bytes are free when it returns.
static int mx_send(int to, const void *head, int headLength, const void *rest, int restLength) {
	if (mx_free_count == 0) {
		if (mx_free_room == 0) mx_free = mx_grow(mx_free, (mx_free_room = 1024) * sizeof *mx_free);
		mx_free[mx_free_count++] = mx_grow(NULL, MX_PACKET);
	}
	char *p = mx_free[--mx_free_count];
	memcpy(p, head, headLength);
	if (restLength > 0) memcpy(p + headLength, rest, restLength);
	MPI_Request r;
	int left = 0;
	int code = MPI_Isend(p, headLength + restLength, MPI_BYTE, to, MX_PACKET_TAG, mx_wire, &r);
	if (code == MPI_SUCCESS) code = MPI_Test(&r, &left, MPI_STATUS_IGNORE);
	if (code == MPI_SUCCESS && !left) {
		*mx_add(&mx_out, (uint64_t)(uintptr_t)p) = r;
		return code;
	}
	mx_free[mx_free_count++] = p;
	return code;
}

// mx_body begins to send or receive the bytes that a packet has announced. Mx_poll
// tells of the end.
static int mx_body(int send, int peer, int tag, void *bytes, int length, uint64_t id) {
	MPI_Request r;
	int code;
	if (send)
		code = MPI_Isend(bytes, length, MPI_BYTE, peer, tag, mx_wire, &r);
	else
		code = MPI_Irecv(bytes, length, MPI_BYTE, peer, tag, mx_wire, &r);
	if (code == MPI_SUCCESS) *mx_add(&mx_bodies, id) = r;
	return code;
}

static uint64_t mx_ended[MX_REAP];
static int mx_lengths[MX_REAP];

// mx_poll moves messages, up to so many times until something happens, and returns
// how many events it stored.
static int mx_poll(int times, mx_event *events, int room, int *code) {
	int n = 0;
	*code = MPI_SUCCESS;
	for (; mx_in_taken > 0; mx_in_taken--) { // the Go side is done with these
		int i = (mx_in_next - mx_in_taken + MX_RING) % MX_RING;
		if ((*code = mx_post(i)) != MPI_SUCCESS) return n;
	}
	for (; times > 0 && n == 0; times--) {
		while (n < room && mx_in_taken < MX_RING / 2) {
			int came = 0;
			MPI_Status s;
			*code = MPI_Test(&mx_in_request[mx_in_next], &came, &s);
			if (*code != MPI_SUCCESS) return n;
			if (!came) break;
			int length;
			MPI_Get_count(&s, MPI_BYTE, &length);
			events[n++] = (mx_event){.kind = MX_CAME, .source = s.MPI_SOURCE, .length = length, .bytes = mx_in[mx_in_next]};
			mx_in_next = (mx_in_next + 1) % MX_RING;
			mx_in_taken++;
		}
		int ended;
		*code = mx_reap(&mx_bodies, mx_ended, mx_lengths, room - n < MX_REAP ? room - n : MX_REAP, &ended);
		for (int i = 0; i < ended; i++) events[n++] = (mx_event){.kind = MX_BODY, .id = mx_ended[i], .length = mx_lengths[i]};
		if (*code != MPI_SUCCESS) return n;
		*code = mx_reap(&mx_out, mx_ended, mx_lengths, MX_REAP, &ended);
		for (int i = 0; i < ended; i++)
			if (mx_free_count < mx_free_room)
				mx_free[mx_free_count++] = (char *)(uintptr_t)mx_ended[i];
			else
				free((char *)(uintptr_t)mx_ended[i]);
		if (*code != MPI_SUCCESS) return n;
	}
	return n;
}

// mx_leave says that this process needs the others no more; mx_left, whether all
// have said so.
static MPI_Request mx_bye_request;

static int mx_leave(void) { return MPI_Ibarrier(mx_bye, &mx_bye_request); }

static int mx_left(int *all) { return MPI_Test(&mx_bye_request, all, MPI_STATUS_IGNORE); }

static int mx_stop(void) {
	for (int i = 0; i < MX_RING; i++)
		if (mx_in_request[i] != MPI_REQUEST_NULL) {
			MPI_Cancel(&mx_in_request[i]);
			MPI_Wait(&mx_in_request[i], MPI_STATUS_IGNORE);
		}
	MPI_Comm_free(&mx_wire);
	MPI_Comm_free(&mx_bye);
	return MPI_Finalize();
}

#include <sched.h>

static void mx_yield(void) { sched_yield(); }
