// Shared by the files of this program.
#include <mpi.h>

extern int rank, size; // in MPI_COMM_WORLD

double now(void);      // ns
void print(double ns); // at rank 0

void collectives(int samples, int cells, char **names);
