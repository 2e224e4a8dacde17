// The end of PMI, the protocol between a launcher and the processes of MPICH. From MPICH 4.2
// on, MPI_Finalize leaves it to a function that C's exit calls. A Go program ends without
// calling exit, and mpirun kills the remaining processes when one has ended without it.
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

// An mx_pmi is the socket to the launcher, if there is one.
typedef struct {
	int fd; // -1: none
	struct stat is;
} mx_pmi;

static mx_pmi mx_pmi_socket(void) {
	mx_pmi p = {.fd = -1};
	const char *fd = getenv("PMI_FD"), *version = getenv("PMI_VERSION");
	if (fd && (!version || strcmp(version, "1") == 0) && fstat(atoi(fd), &p.is) == 0 && S_ISSOCK(p.is.st_mode)) p.fd = atoi(fd);
	return p;
}

// mx_pmi_end ends PMI, version 1, unless MPI_Finalize has done it: then the socket is closed,
// and its number may belong to another file.
static void mx_pmi_end(mx_pmi p) {
	static const char finalize[] = "cmd=finalize\n";
	struct stat is;
	char c = 0;
	if (p.fd < 0 || fstat(p.fd, &is) != 0 || is.st_dev != p.is.st_dev || is.st_ino != p.is.st_ino) return;
	if (send(p.fd, finalize, sizeof finalize - 1, MSG_NOSIGNAL) < 0) return;
	while (c != '\n' && recv(p.fd, &c, 1, 0) == 1) {} // the launcher's answer needs a reader
}
