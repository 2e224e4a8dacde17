// The part of MPI that the transport needs, as functions without types or macros of MPI: Go
// sees integers, bytes and mx_event. All but mx_error are called under one lock
// (MPI_THREAD_SERIALIZED).
#define _GNU_SOURCE // RTLD_DEFAULT
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "pmi.h"

#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION >= 5 && __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif
#ifdef OMPI_HAVE_MPI_EXT_FTMPI
#define MX_ULFM 1
#else
#define MX_ULFM 0
#endif

enum {
	// Bytes of the longest packet to a process of this machine, and of any packet. Open MPI sends
	// this much at once: see mx_longest. Of a longer message the receiver has to request the rest. A
	// sender that dies in between leaves a receive that never ends, and messages behind it are
	// never looked at.
	MX_NEAR = 4032,
	MX_PACKET = (64 << 10) + 256,
	MX_RING = 32,          // receives posted for packets
	MX_PACKET_TAG = 0,     // transfers have others
	MX_REAP = 128,         // requests examined in one call
	MX_EVENTS = 128,       // stored in one call
	MX_PENDING = 4,        // requests examined one by one in one call that are not complete
	MX_HEADER = 56,        // bytes
	MX_PIECE = 1 << 20,    // bytes of a transfer that are copied at a time
	MX_LONGEST = 1 << 30,  // bytes of a piece that is not copied: MPI counts them in an int
	MX_PIECES = 4,         // of one transfer, under way
};

// Kinds of events.
enum { MX_CAME = 1, MX_TRANSFER = 2 };

typedef struct {
	int kind;
	int source;     // of a packet
	int64_t length; // of the packet, or of a transfer that has come
	void *bytes;    // of the packet, valid until the next mx_poll
	uint64_t id;    // of a transfer
	int lost;       // the transfer's peer has died
} mx_event;

// Go reads and writes these without passing pointers, which would cost a check each. They are
// not static, so that Go finds them.
mx_event mx_events[MX_EVENTS]; // events that mx_poll has stored
int mx_code;                   // result of mx_poll
const char *mx_call;           // the call of MPI with this result
int mx_news_of_death;          // mx_failed must be called
char mx_header[MX_HEADER];     // of the packet that mx_send will send

static MPI_Comm mx_wire, mx_bye, mx_node;
static int mx_rank, mx_size, mx_guest;

// Packets from others.
static char *mx_in[MX_RING];
static MPI_Request mx_in_request[MX_RING];
static int mx_in_next, mx_in_taken; // the next to come, and the number before it to be posted again

// A growing list of requests, with what each is for.
typedef struct {
	MPI_Request *request;
	uint64_t *what; // a packet's buffer, or an mx_piece
	int *peer;
	int *done;
	int count, room;
	int from; // the next to examine
} mx_list;

// An mx_transfer is a transfer, whose bytes MPI is given in pieces, or copies of them: see mx_body.
typedef struct {
	int send, peer, tag;
	char *bytes;
	int64_t length, begun, came; // begun: in the pieces that have begun
	uint64_t id;
	int underway, over, lost; // underway: pieces; over: no more begin
} mx_transfer;

typedef struct mx_piece {
	struct mx_piece *next; // when it is free
	mx_transfer *of;
	int64_t at;
	int length;
	char copy[];
} mx_piece;

int mx_copies;                  // set by Go: MPI has copies
int mx_longest_piece = MX_LONGEST; // set by Go: bytes
static mx_piece *mx_idle; // free pieces

static mx_list mx_out, mx_bodies;
static int mx_died; // a process has died, and mx_failed was not called since
static char *mx_dead; // for each process, whether mx_failed has stored it; NULL where none can die
static char **mx_free; // buffers of MX_NEAR bytes, of packets that have left
static int mx_free_count, mx_free_room;

static void *mx_grow(void *p, size_t size) {
	p = realloc(p, size);
	if (p == NULL) abort();
	return p;
}

static MPI_Request *mx_add(mx_list *l, uint64_t what, int peer) {
	if (l->count == l->room) {
		l->room = l->room ? 2 * l->room : 64;
		l->request = mx_grow(l->request, l->room * sizeof *l->request);
		l->what = mx_grow(l->what, l->room * sizeof *l->what);
		l->peer = mx_grow(l->peer, l->room * sizeof *l->peer);
		l->done = mx_grow(l->done, l->room * sizeof *l->done);
	}
	l->what[l->count] = what;
	l->peer[l->count] = peer;
	return &l->request[l->count++];
}

// mx_death says whether an error reports a death, and notes it.
static int mx_death(int code) {
#if MX_ULFM
	int class = MPI_SUCCESS;
	if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
	if (class == MPIX_ERR_PROC_FAILED || class == MPIX_ERR_PROC_FAILED_PENDING) return mx_died = 1;
#endif
	return 0;
}

// An mx_ended is a request that is complete.
typedef struct {
	uint64_t what;
	int64_t length;
	int lost; // its peer has died
} mx_ended;

static int mx_count(const MPI_Status *s) {
	int n = 0;
	MPI_Get_count(s, MPI_BYTE, &n);
	return n;
}

// mx_keep moves a request of a list, and all that the list has of it.
static void mx_keep(mx_list *l, int at, int from) {
	l->request[at] = l->request[from];
	l->what[at] = l->what[from];
	l->peer[at] = l->peer[from];
}

// mx_reap_mortal is mx_reap where processes may die. A request that is to or from a dead process is left
// alone. Open MPI fails those that are tested, and it ends this process if bytes of a failed request come or
// leave after all, as when a network heals. So none is tested that is not complete.
static int mx_reap_mortal(mx_list *l, mx_ended *ended, int most, int *reaped) {
	int n = 0, code = MPI_SUCCESS, i = l->from, kept = i;
	for (int pending = 0; i < l->count && n < most && pending < MX_PENDING; i++) {
		int over;
		MPI_Status s;
		if ((code = MPI_Request_get_status(l->request[i], &over, MPI_STATUS_IGNORE)) != MPI_SUCCESS) break;
		if (!over && !mx_dead[l->peer[i]]) {
			pending++;
			mx_keep(l, kept++, i);
			continue;
		}
		mx_ended *e = &ended[n++];
		*e = (mx_ended){.what = l->what[i], .lost = !over};
		if (!over) continue;
		code = MPI_Test(&l->request[i], &over, &s);
		if (code == MPI_SUCCESS)
			e->length = mx_count(&s);
		else if (!(e->lost = mx_death(code)))
			break;
	}
	l->from = kept;
	for (; i < l->count; i++) mx_keep(l, kept++, i);
	l->count = kept;
	*reaped = n;
	return mx_death(code) ? MPI_SUCCESS : code;
}

// mx_reap drops complete requests from a list, and stores them. It examines at most this many,
// and next time continues behind them.
static int mx_reap(mx_list *l, mx_ended *ended, int most, int *reaped) {
	static MPI_Status status[MX_REAP];
	*reaped = 0;
	if (l->from >= l->count) l->from = 0;
	if (mx_dead != NULL) return mx_reap_mortal(l, ended, most, reaped);
	if (most > l->count - l->from) most = l->count - l->from;
	if (most <= 0) return MPI_SUCCESS;
	int from = l->from, n = 0, code = MPI_Testsome(most, l->request + from, &n, l->done, status);
	l->from += most;
	if (n == MPI_UNDEFINED || n <= 0) return code;
	int each = code != MPI_SUCCESS; // status[i].MPI_ERROR is set
	code = MPI_SUCCESS;
	for (int i = 0; i < n; i++) {
		int at = from + l->done[i];
		ended[i] = (mx_ended){.what = l->what[at]};
		if (each && status[i].MPI_ERROR != MPI_SUCCESS)
			code = status[i].MPI_ERROR;
		else
			ended[i].length = mx_count(&status[i]);
	}
	int kept = from;
	for (int i = from; i < l->count; i++)
		if (l->request[i] != MPI_REQUEST_NULL) mx_keep(l, kept++, i);
	l->count = kept;
	l->from -= n;
	*reaped = n;
	return code;
}

// mx_error stores MPI's text of an error, and returns the index of its class in mpicx's list of
// classes.
static int mx_error(int code, char *text, int room) {
	static const int classes[] = {MPI_ERR_OTHER, MPI_ERR_BUFFER, MPI_ERR_COUNT, MPI_ERR_TAG, MPI_ERR_RANK, MPI_ERR_ROOT,
		MPI_ERR_OP, MPI_ERR_TYPE, MPI_ERR_TRUNCATE, MPI_ERR_COMM, MPI_ERR_UNSUPPORTED_OPERATION};
	char all[MPI_MAX_ERROR_STRING];
	int n = 0, class = MPI_ERR_OTHER, place = sizeof classes / sizeof *classes;
	if (MPI_Error_string(code, all, &n) != MPI_SUCCESS) n = snprintf(all, sizeof all, "error %d", code);
	snprintf(text, room, "%.*s", n, all);
	MPI_Error_class(code, &class);
	while (--place > 0 && classes[place] != class) {}
	return place;
}

// mx_library stores MPI's description of itself.
static void mx_library(char *text, int room) {
	char all[MPI_MAX_LIBRARY_VERSION_STRING];
	int n = 0;
	MPI_Get_library_version(all, &n);
	snprintf(text, room, "%.*s", n, all);
}

// mx_longest returns the length of the longest packet to a process of another machine. A longer message
// waits there for the receiver, which only matters where processes may die: see MX_NEAR.
static int mx_longest(int mortal) {
	if (!mortal) return MX_PACKET;
	unsigned long long least = MX_NEAR;
#if MX_ULFM
	// The least limit of Open MPI's ways to another machine, minus room for its headers. Which of them it
	// uses is unknown, except that sm (also called vader) and self are for one machine, and one whose limit
	// is 0 sends nothing.
	int level, count = 0, found = 0;
	if (MPI_T_init_thread(MPI_THREAD_SERIALIZED, &level) != MPI_SUCCESS) return MX_NEAR;
	MPI_T_cvar_get_num(&count);
	for (int i = 0; i < count; i++) {
		char name[128], way[128];
		int room = sizeof name, none = 0, verbosity, bind, scope, end = 0, n;
		MPI_Datatype type;
		MPI_T_enum values;
		MPI_T_cvar_handle cvar;
		unsigned long limit = 0;
		if (MPI_T_cvar_get_info(i, name, &room, &verbosity, &type, &values, NULL, &none, &bind, &scope) != MPI_SUCCESS) continue;
		if (sscanf(name, "btl_%127[^_]_eager_limit%n", way, &end) != 1 || end == 0 || name[end] != 0) continue;
		if (!strcmp(way, "self") || !strcmp(way, "sm") || !strcmp(way, "vader") || type != MPI_UNSIGNED_LONG) continue;
		if (MPI_T_cvar_handle_alloc(i, NULL, &cvar, &n) != MPI_SUCCESS) continue;
		if (n == 1 && MPI_T_cvar_read(cvar, &limit) == MPI_SUCCESS && limit > 0) least = found++ && least < limit ? least : limit;
		MPI_T_cvar_handle_free(&cvar);
	}
	MPI_T_finalize();
	least = found && least > MX_NEAR + 256 ? least - 256 : MX_NEAR;
#endif
	return least < MX_PACKET ? least : MX_PACKET;
}

static int mx_post(int i) {
	return MPI_Irecv(mx_in[i], MX_PACKET, MPI_BYTE, MPI_ANY_SOURCE, MX_PACKET_TAG, mx_wire, &mx_in_request[i]);
}

// mx_alive says whether MPI has been initialized and not finalized.
static int mx_alive(void) {
	int begun, over;
	MPI_Initialized(&begun);
	MPI_Finalized(&over);
	return begun && !over;
}

// mx_dup makes the communicators, whose errors are returned. Errors of MPI_COMM_WORLD are
// returned while mx_dup runs.
static int mx_dup(void) {
	MPI_Errhandler before;
	int code = MPI_Comm_get_errhandler(MPI_COMM_WORLD, &before);
	if (code != MPI_SUCCESS) return code;
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	if ((code = MPI_Comm_dup(MPI_COMM_WORLD, &mx_wire)) == MPI_SUCCESS &&
		(code = MPI_Comm_dup(MPI_COMM_WORLD, &mx_bye)) == MPI_SUCCESS) {
		MPI_Comm_set_errhandler(mx_wire, MPI_ERRORS_RETURN);
		MPI_Comm_set_errhandler(mx_bye, MPI_ERRORS_RETURN);
	}
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, before);
	MPI_Errhandler_free(&before);
	return code;
}

// mx_start begins this process's part. It begins MPI too, unless the program has: then it is a
// guest there. Provided says from which threads MPI can be called, as 0 to 3 in the standard's
// order, or -1 if MPI has been finalized. Mortal is 0 if the death of a process ends the
// others.
static int mx_start(int *rank, int *size, int *guest, int *provided, int *mortal, int *crowded, int *longest) {
	int begun, over, level, code, local, all;
	MPI_Initialized(&begun);
	MPI_Finalized(&over);
	*provided = -1;
	if (over) return MPI_SUCCESS;
	mx_guest = *guest = begun;
	if (begun)
		code = MPI_Query_thread(&level);
	else {
#if MX_ULFM
		setenv("OMPI_MCA_async_mpi_finalize", "1", 0); // otherwise survivors wait for the dead at the end
		setenv("OMPI_MCA_btl_tcp_eager_limit", "66560", 0); // more than MX_PACKET: see mx_longest
		setenv("OMPI_MCA_mpi_ft_detector", "0", 1); // with mx_lost it takes living ranks for dead
		setenv("PMIX_MCA_gds", "hash", 0); // the other way needs memory at an address that Go may use
#endif
		code = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level);
	}
	if (code != MPI_SUCCESS) return code;
	*provided = (level >= MPI_THREAD_FUNNELED) + (level >= MPI_THREAD_SERIALIZED) + (level >= MPI_THREAD_MULTIPLE);
	if (level < MPI_THREAD_SERIALIZED) return MPI_SUCCESS;
	if (!begun) { // otherwise the program has chosen how errors are handled
		MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
		MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	}
	if ((code = mx_dup()) != MPI_SUCCESS) return code;
	MPI_Comm_rank(mx_wire, &mx_rank);
	MPI_Comm_size(mx_wire, &mx_size);
	*rank = mx_rank;
	*size = mx_size;
	*mortal = 0;
#if MX_ULFM
	int *on, set = 0;
	MPI_Comm_get_attr(MPI_COMM_WORLD, MPIX_FT, &on, &set);
	*mortal = set && *on;
	if (*mortal) mx_dead = memset(mx_grow(NULL, mx_size), 0, mx_size);
#endif
	*longest = mx_longest(*mortal);
	if ((code = MPI_Comm_split_type(mx_bye, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &mx_node)) != MPI_SUCCESS) return code;
	MPI_Comm_size(mx_node, &local);
	local = local > sysconf(_SC_NPROCESSORS_ONLN); // not the processors that it is bound to: others have different ones
	if ((code = MPI_Allreduce(&local, &all, 1, MPI_INT, MPI_MAX, mx_bye)) != MPI_SUCCESS) return code;
	*crowded = all;
	for (int i = 0; i < MX_RING; i++) {
		mx_in[i] = mx_grow(NULL, MX_PACKET);
		if ((code = mx_post(i)) != MPI_SUCCESS) return code;
	}
	return MPI_SUCCESS;
}

// mx_machines stores, for each process, the first process that shares memory with it.
static int mx_machines(int *first) {
	int mine = mx_rank, code = MPI_Bcast(&mine, 1, MPI_INT, 0, mx_node);
	if (code != MPI_SUCCESS) return code;
	return MPI_Allgather(&mine, 1, MPI_INT, first, 1, MPI_INT, mx_bye);
}

// mx_near makes mx_node the group of processes that share memory with this one or, if most is
// not 0, of at most this many of them. It stores their ranks.
static int mx_near(int most, int *count, int *ranks) {
	int code, me;
	if (most > 0) {
		MPI_Comm part;
		MPI_Comm_rank(mx_node, &me);
		if ((code = MPI_Comm_split(mx_node, me / most, me, &part)) != MPI_SUCCESS) return code;
		MPI_Comm_free(&mx_node);
		mx_node = part;
	}
	MPI_Comm_size(mx_node, count);
	return MPI_Allgather(&mx_rank, 1, MPI_INT, ranks, 1, MPI_INT, mx_node);
}

static int mx_from_first(void *bytes, int length) { return MPI_Bcast(bytes, length, MPI_BYTE, 0, mx_node); }

static int mx_all_near(int *ok) {
	int mine = *ok;
	return MPI_Allreduce(&mine, ok, 1, MPI_INT, MPI_MIN, mx_node);
}

// mx_all_here returns when all have called it. A process that leaves it and dies keeps no other
// from returning, as it could with a barrier.
static int mx_all_here(void) {
#if MX_ULFM
	int flag = 1, code = MPIX_Comm_agree(mx_bye, &flag);
	return mx_death(code) ? MPI_SUCCESS : code;
#endif
	return MPI_SUCCESS;
}

// mx_buffer returns a buffer for a packet of this length. mx_drop takes it back, as mx_list has it: the
// lowest bit says that it is longer than those that are kept.
static uintptr_t mx_buffer(int length) {
	if (length > MX_NEAR) return (uintptr_t)mx_grow(NULL, length) | 1;
	if (mx_free_count > 0) return (uintptr_t)mx_free[--mx_free_count];
	if (mx_free_room == 0) mx_free = mx_grow(mx_free, (mx_free_room = 1024) * sizeof *mx_free);
	return (uintptr_t)mx_grow(NULL, MX_NEAR);
}

static void mx_drop(uintptr_t buffer) {
	if (buffer & 1 || mx_free_count == mx_free_room)
		free((char *)(buffer & ~(uintptr_t)1));
	else
		mx_free[mx_free_count++] = (char *)buffer;
}

// mx_send sends a packet: the first bytes of mx_header, and a rest. The rest's bytes are free
// when it returns.
static int mx_send(int to, int headerLength, const void *rest, int restLength) {
	uintptr_t buffer = mx_buffer(headerLength + restLength);
	char *p = (char *)(buffer & ~(uintptr_t)1);
	memcpy(p, mx_header, headerLength);
	if (restLength > 0) memcpy(p + headerLength, rest, restLength);
	MPI_Request r;
	int code = MPI_Isend(p, headerLength + restLength, MPI_BYTE, to, MX_PACKET_TAG, mx_wire, &r);
	if (code == MPI_SUCCESS) {
		*mx_add(&mx_out, buffer, to) = r; // mostly it has left: mx_poll tests it later
		return code;
	}
	mx_drop(buffer);
	return mx_death(code) ? MPI_SUCCESS : code; // those that need to know get the death
}

// mx_begin begins the next piece of a transfer. It returns an error only if that is no death.
static int mx_begin(mx_transfer *t) {
	mx_piece *p = mx_idle ? mx_idle : mx_grow(NULL, sizeof *p + (mx_copies ? mx_longest_piece : 0));
	if (p == mx_idle) mx_idle = p->next;
	p->of = t;
	p->at = t->begun;
	p->length = t->length - t->begun < mx_longest_piece ? (int)(t->length - t->begun) : mx_longest_piece;
	t->begun += p->length;
	char *bytes = mx_copies ? p->copy : t->bytes + p->at;
	MPI_Request r;
	int code;
	if (t->send) {
		if (mx_copies) memcpy(bytes, t->bytes + p->at, p->length);
		code = MPI_Isend(bytes, p->length, MPI_BYTE, t->peer, t->tag, mx_wire, &r);
	} else
		code = MPI_Irecv(bytes, p->length, MPI_BYTE, t->peer, t->tag, mx_wire, &r);
	if (code == MPI_SUCCESS) {
		*mx_add(&mx_bodies, (uintptr_t)p, t->peer) = r;
		t->underway++;
		return code;
	}
	p->next = mx_idle;
	mx_idle = p;
	t->over = 1;
	t->lost = mx_death(code);
	return t->lost ? MPI_SUCCESS : code;
}

// mx_body begins to send or receive the bytes that a packet has announced. mx_poll reports the
// end, unless the peer is already lost.
//
// When a process has died, Open MPI ends what it is needed for, and does not wait until the bytes that are
// under way have come or left. They still do: a dead process's system sends what it had written, and one that is
// dead only for others continues when the network heals. So where processes are mortal MPI has copies, and
// those that a death has ended are never used again.
static int mx_body(int send, int peer, int tag, void *bytes, int64_t length, uint64_t id, int *lost) {
	mx_transfer *t = mx_grow(NULL, sizeof *t);
	*t = (mx_transfer){.send = send, .peer = peer, .tag = tag, .length = length, .bytes = bytes, .id = id};
	int code = mx_begin(t);
	*lost = t->lost;
	if (t->over) free(t);
	return code;
}

// mx_moved handles the end of a request of a transfer. It says whether the transfer is over, and makes e
// its end.
static int mx_moved(mx_ended *e, int *code) {
	mx_piece *p = (mx_piece *)(uintptr_t)e->what;
	mx_transfer *t = p->of;
	t->underway--;
	if (e->lost)
		t->over = t->lost = 1; // p is MPI's forever
	else {
		if (!t->send) {
			if (mx_copies) memcpy(t->bytes + p->at, p->copy, e->length);
			t->came += e->length;
			if (e->length < p->length) t->over = 1; // fewer bytes have come: it was the first piece
		}
		p->next = mx_idle;
		mx_idle = p;
	}
	while (*code == MPI_SUCCESS && !t->over && t->begun < t->length && t->underway < MX_PIECES) *code = mx_begin(t);
	if (t->underway > 0) return 0;
	*e = (mx_ended){.what = t->id, .length = t->came, .lost = t->lost};
	free(t);
	return 1;
}

// mx_retry handles the error of a packet's receive. The receive is to be posted again, unless
// it is still pending, or the packet has come: Open MPI may report a death twice.
static int mx_retry(int i, int code, int *came) {
	if (!mx_death(code)) return code;
#if MX_ULFM
	int class;
	MPI_Error_class(code, &class);
	if (class == MPIX_ERR_PROC_FAILED_PENDING) {
		if (*came && mx_in_request[i] != MPI_REQUEST_NULL) MPI_Request_free(&mx_in_request[i]);
		return MPI_SUCCESS;
	}
#endif
	if (mx_in_request[i] != MPI_REQUEST_NULL) MPI_Request_free(&mx_in_request[i]);
	*came = 0;
	mx_in_next = (i + 1) % MX_RING; // the others are before it now
	mx_in_taken++;
	return MPI_SUCCESS;
}

// mx_poll moves messages, at most this many times, until something happens. It returns the
// number of events that it has stored.
static int mx_poll(int times) {
	static mx_ended ended[MX_REAP];
	int n = 0, count;
	mx_code = MPI_SUCCESS;
	mx_news_of_death = 0;
	mx_call = "MPI_Irecv";
	for (; mx_in_taken > 0; mx_in_taken--) { // Go no longer uses these
		int i = (mx_in_next - mx_in_taken + MX_RING) % MX_RING;
		if ((mx_code = mx_post(i)) != MPI_SUCCESS) return n;
	}
	for (; times > 0 && n == 0 && !mx_died; times--) {
		int came = 0, length; // one packet at a time: looking for the next takes longer than another call
		MPI_Status s;
		mx_call = "MPI_Test";
		mx_code = MPI_Test(&mx_in_request[mx_in_next], &came, &s);
		if (mx_code != MPI_SUCCESS) {
			mx_code = mx_retry(mx_in_next, mx_code, &came);
			if (mx_code != MPI_SUCCESS) return n;
		}
		if (came) {
			MPI_Get_count(&s, MPI_BYTE, &length);
			mx_events[n++] = (mx_event){.kind = MX_CAME, .source = s.MPI_SOURCE, .length = length, .bytes = mx_in[mx_in_next]};
			mx_in_next = (mx_in_next + 1) % MX_RING;
			mx_in_taken++;
		}
		mx_call = "MPI_Testsome";
		mx_code = mx_reap(&mx_bodies, ended, MX_EVENTS - n, &count);
		for (int i = 0; i < count; i++)
			if (mx_moved(&ended[i], &mx_code))
				mx_events[n++] = (mx_event){.kind = MX_TRANSFER, .id = ended[i].what, .length = ended[i].length, .lost = ended[i].lost};
		if (mx_code != MPI_SUCCESS) return n;
		if (n > 0 && mx_out.count < MX_REAP) break;
		mx_code = mx_reap(&mx_out, ended, MX_REAP, &count);
		for (int i = 0; i < count; i++)
			if (!ended[i].lost) mx_drop(ended[i].what); // a lost one's bytes may still be sent: the network may heal
		if (mx_code != MPI_SUCCESS) return n;
	}
	mx_news_of_death = mx_died;
	return n;
}

// mx_failed stores the processes that have died, and lets receives from MPI_ANY_SOURCE continue
// without them.
static int mx_failed(int *ranks, int room, int *count) {
	int code = MPI_SUCCESS;
	*count = mx_died = 0;
#if MX_ULFM
	MPI_Group dead, all;
	if ((code = MPIX_Comm_get_failed(mx_wire, &dead)) != MPI_SUCCESS) return code;
	MPI_Group_size(dead, count);
	code = MPIX_Comm_ack_failed(mx_wire, *count, &(int){0});
	if (*count > room) *count = room;
	int *of = mx_grow(NULL, (*count + 1) * sizeof *of);
	for (int i = 0; i < *count; i++) of[i] = i;
	MPI_Comm_group(mx_wire, &all);
	MPI_Group_translate_ranks(dead, *count, of, all, ranks);
	for (int i = 0; i < *count; i++) mx_dead[ranks[i]] = 1;
	free(of);
	MPI_Group_free(&dead);
	MPI_Group_free(&all);
#endif
	return code;
}

// mx_lost informs MPI of a death as its launcher would. Any thread may call it. Open MPI itself
// does not notice that a process exits with a status other than 0: its agreements, and
// MPI_Finalize, would wait for the process.
static void mx_lost(int rank) {
#if MX_ULFM
	// From PMIx, which Open MPI uses. Its headers may not be here.
	enum { PROC = 22, RANGE_PROC_LOCAL = 7, TERM_WO_SYNC = -200 };
	typedef struct { char nspace[256]; uint32_t rank; } process;
	void *(*create)(size_t) = dlsym(RTLD_DEFAULT, "PMIx_Info_create");
	int (*load)(void *, const char *, const void *, uint16_t) = dlsym(RTLD_DEFAULT, "PMIx_Info_load");
	int (*notify)(int, const process *, uint8_t, void *, size_t, void *, void *) = dlsym(RTLD_DEFAULT, "PMIx_Notify_event");
	void (*drop)(void *, size_t) = dlsym(RTLD_DEFAULT, "PMIx_Info_free");
	const char *job = getenv("PMIX_NAMESPACE");
	if (!create || !load || !notify || !drop || !job) return;
	process me = {.rank = mx_rank}, dead = {.rank = rank};
	snprintf(me.nspace, sizeof me.nspace, "%s", job);
	snprintf(dead.nspace, sizeof dead.nspace, "%s", job);
	void *info = create(1);
	if (!info) return;
	load(info, "pmix.evproc", &dead, PROC);
	notify(TERM_WO_SYNC, &me, RANGE_PROC_LOCAL, info, 1, NULL, NULL);
	drop(info, 1);
#endif
}

static int mx_underway(void) { return mx_out.count + mx_bodies.count; }

// mx_leave says that this process no longer needs the others; mx_left, whether all have said
// so.
static MPI_Request mx_bye_request;
static int mx_bye_flag;

static int mx_leave(int mortal) {
	mx_bye_flag = 1;
#if MX_ULFM
	if (mortal) return MPIX_Comm_iagree(mx_bye, &mx_bye_flag, &mx_bye_request);
#endif
	return MPI_Ibarrier(mx_bye, &mx_bye_request);
}

static int mx_left(int *all) {
	int code = MPI_Test(&mx_bye_request, all, MPI_STATUS_IGNORE);
	if (!mx_death(code)) return code;
	*all = mx_bye_request == MPI_REQUEST_NULL;
	return MPI_SUCCESS;
}

// mx_stop frees what mx_start and mx_send have allocated, and ends MPI if mx_start has begun
// it.
static int mx_stop(int lost) {
	for (int i = 0; i < MX_RING; i++) {
		if (mx_in_request[i] != MPI_REQUEST_NULL) {
			MPI_Cancel(&mx_in_request[i]);
			MPI_Wait(&mx_in_request[i], MPI_STATUS_IGNORE);
		}
		free(mx_in[i]);
	}
	while (mx_free_count > 0) free(mx_free[--mx_free_count]);
	for (mx_piece *p; (p = mx_idle) != NULL; free(p)) mx_idle = p->next;
	mx_in_next = mx_in_taken = mx_died = 0;
	if (!lost) { // otherwise freeing, which is collective, would wait for the dead
		MPI_Comm_free(&mx_node);
		MPI_Comm_free(&mx_wire);
		MPI_Comm_free(&mx_bye);
	}
	if (mx_guest) return MPI_SUCCESS;
	mx_pmi pmi = mx_pmi_socket();
	int code = MPI_Finalize();
	mx_pmi_end(pmi);
	return code;
}
