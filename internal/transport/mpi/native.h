// The part of MPI that -tags native needs, beside shim.h: communicators to revoke and to
// agree on. All calls are under the same lock, and only nx_dup and
// nx_make block.
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>

#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION >= 5 && __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif
#ifndef OMPI_HAVE_MPI_EXT_FTMPI
#error "-tags native needs an MPI with ULFM: take Open MPI 5 (Debian 13 has it), or build without the tag"
#endif

// These are the names of Open MPI 5.0. When the standard's names come, choose between them
// here.
#define NX_ERR_PROC_FAILED MPIX_ERR_PROC_FAILED
#define NX_ERR_REVOKED MPIX_ERR_REVOKED
#define nx_comm_revoke MPIX_Comm_revoke
#define nx_comm_is_revoked MPIX_Comm_is_revoked
#define nx_comm_iagree MPIX_Comm_iagree
#define nx_comm_shrink MPIX_Comm_shrink // blocking: ishrink comes with Open MPI 6 (open-mpi/ompi#9925)

enum { NX_EVENTS = 64 };

// Kinds of events.
enum { NX_REVOKED = 1, NX_AGREED };

typedef struct {
	int kind;
	int slot;  // of the communicator
	int value; // result of the agreement
} nx_event;

// Not static, so that Go finds them.
nx_event nx_events[NX_EVENTS];
const char *nx_call; // the call that has failed

typedef struct {
	MPI_Comm comm;
	int used, told; // told: Go has the event that it is revoked
} nx_slot;

// An agreement under way. It must not move, because MPI has the address of its flag.
typedef struct nx_vote {
	struct nx_vote *next;
	MPI_Request request;
	int slot, flag;
} nx_vote;

static nx_slot *nx_slots;
static int nx_room;
static nx_vote *nx_votes, **nx_last = &nx_votes;

static int nx_class(int code) {
	int class = MPI_SUCCESS;
	if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
	return class;
}

static int nx_slot_new(void) {
	int i = 0;
	while (i < nx_room && nx_slots[i].used) i++;
	if (i == nx_room) {
		nx_room = nx_room ? 2 * nx_room : 16;
		nx_slots = realloc(nx_slots, nx_room * sizeof *nx_slots);
		if (nx_slots == NULL) abort();
		for (int j = i; j < nx_room; j++) nx_slots[j].used = 0;
	}
	nx_slots[i] = (nx_slot){.comm = MPI_COMM_NULL, .used = 1};
	return i;
}

// nx_dup makes a communicator of all processes. Nothing is told of its revoke before nx_watch.
static int nx_dup(int *slot) {
	MPI_Comm comm;
	int code = MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	if (code != MPI_SUCCESS) return code;
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	*slot = nx_slot_new();
	nx_slots[*slot].comm = comm;
	nx_slots[*slot].told = 1;
	return MPI_SUCCESS;
}

static void nx_watch(int slot) { nx_slots[slot].told = 0; }

// nx_make makes a communicator of all living processes. It returns once they all have called
// it: see type library in native.go.
static int nx_make(int from, int *slot) {
	MPI_Comm comm;
	int code = nx_comm_shrink(nx_slots[from].comm, &comm);
	if (code != MPI_SUCCESS) return code;
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	*slot = nx_slot_new();
	nx_slots[*slot].comm = comm;
	return MPI_SUCCESS;
}

static int nx_revoke(int slot) { return nx_comm_revoke(nx_slots[slot].comm); }

// nx_agree begins an agreement. The agreements on one communicator end in order.
static int nx_agree(int slot, int flag) {
	nx_vote *v = calloc(1, sizeof *v);
	if (v == NULL) abort();
	v->slot = slot;
	v->flag = flag;
	int code = nx_comm_iagree(nx_slots[slot].comm, &v->flag, &v->request);
	if (nx_class(code) == NX_ERR_PROC_FAILED || nx_class(code) == NX_ERR_REVOKED) code = MPI_SUCCESS;
	*nx_last = v;
	nx_last = &v->next;
	return code;
}

static int nx_busy(int slot) {
	for (nx_vote *v = nx_votes; v; v = v->next)
		if (v->slot == slot) return 1;
	return 0;
}

// nx_free frees a communicator. If an agreement is under way on it, the communicator is never
// freed.
static int nx_free(int slot) {
	if (nx_busy(slot)) {
		nx_slots[slot].told = 1;
		return MPI_SUCCESS;
	}
	nx_slots[slot].used = 0;
	return nx_slots[slot].comm == MPI_COMM_NULL ? MPI_SUCCESS : MPI_Comm_free(&nx_slots[slot].comm);
}

// nx_poll stores events and their number. Another call of MPI has to move messages.
static int nx_poll(int *count) {
	int n = 0, done, code;
	nx_call = "MPIX_Comm_is_revoked";
	for (int i = 0; i < nx_room && n < NX_EVENTS; i++) {
		nx_slot *s = &nx_slots[i];
		if (!s->used || s->told) continue;
		if ((code = nx_comm_is_revoked(s->comm, &done)) != MPI_SUCCESS) return *count = n, code;
		if (done) {
			s->told = 1;
			nx_events[n++] = (nx_event){NX_REVOKED, i, 0};
		}
	}
	nx_call = "MPIX_Comm_iagree";
	for (nx_vote **at = &nx_votes, *v; (v = *at) != NULL && n < NX_EVENTS;) {
		code = v->request == MPI_REQUEST_NULL ? MPI_SUCCESS : MPI_Test(&v->request, &done, MPI_STATUS_IGNORE);
		int class = nx_class(code);
		if (class != MPI_SUCCESS && class != NX_ERR_PROC_FAILED && class != NX_ERR_REVOKED) return *count = n, code;
		if (v->request != MPI_REQUEST_NULL) {
			at = &v->next;
			continue;
		}
		nx_events[n++] = (nx_event){NX_AGREED, v->slot, v->flag};
		*at = v->next;
		if (v->next == NULL) nx_last = at;
		free(v);
	}
	return *count = n, MPI_SUCCESS;
}

static int nx_underway(void) { return nx_votes != NULL; }

