// Mpicxrun starts the processes of a job on this machine, without MPI: each is a rank of
// what [github.com/mpicx/go-mpicx/mpicx.Run] starts in it, in a program built with any tags,
// or none.
//
//	mpicxrun [-n processes] [-label] program [argument ...]
//
// Rank 0 has the standard input; that of the others is empty. Each writes to mpicxrun's
// standard output and error itself, and where lines are to be whole and told apart, -label
// has each begin with the rank of its process: [2].
//
// SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP and SIGCONT are passed on to all
// processes, and to what they have started. (SIGQUIT has a Go program print what its
// goroutines do.) When mpicxrun ends, whatever ends it, they are killed.
//
// MPICXRUN_RANK and MPICXRUN_SIZE tell a process its rank and the number of processes. What a
// rank starts can't be that rank, too: unset MPICXRUN_JOB for a program that is to be none.
//
// # Deaths
//
// A process that ends while its Run needs others, or others it, by whatever cause, has died. In programs
// built with -tags ulfm the others survive it. Any other job ends: Run returns an error that
// says who has died at each rank that is left, and those that have not ended two seconds
// later get a SIGTERM, and two seconds after that a SIGKILL. Mpicxrun says on standard error
// who has died, and how.
//
// # Exit status
//
//	0      all processes have ended with 0, or have survived the deaths of others and ended with 0
//	1-255  of the first process that has not, 128 and the signal's number if one has ended it;
//	       1 if it has died by exiting with 0
//	2      the arguments make no sense
//	125    there can be no job: not on Windows, nor inside of mpirun or mpicxrun
//	126    the program can't be started
//	127    there is no such program
package main
