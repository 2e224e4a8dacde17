// Mpicxrun starts the processes of a job on this machine, without MPI. Each process is a rank
// of the job that [github.com/mpicx/go-mpicx/mpicx.Run] starts in it. The program may be built
// with any tags.
//
//	mpicxrun [-n processes] [-respawn processes] [-grace time] [-label] [-v] program [argument ...]
//
// -np is the same as -n. With -v mpicxrun prints the pid of each process: kill -9 shows what a
// death does.
//
// Rank 0 reads the standard input; that of the other ranks is empty. The processes write to
// mpicxrun's standard output and error directly. With -label lines stay whole, and each begins with
// the rank of its process: [2]. If mpicxrun can't write a line, it prints why to standard error; a
// process that writes more then gets SIGPIPE. If a child that a process has left behind has its
// output open, mpicxrun waits for the end of that for a second. If a process gets a SIGPIPE because
// nobody reads the output of the job any more, the others get a SIGTERM, unless the job survives
// deaths.
//
// # Signals
//
// SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP and SIGCONT are passed on to all
// processes, and to the processes that these have started. After SIGINT, SIGTERM, SIGHUP or SIGQUIT
// no process is started any more. When mpicxrun ends, for whatever reason, the processes are
// killed.
//
// A program can stop on SIGTERM or SIGINT (Ctrl-C) in its own time, up to the time that -grace
// gives: 30s, 5m; the default is 30s. The processes that are still there then get a SIGKILL, and so
// do the processes that they have started. They get it at once if a second SIGINT or SIGTERM comes
// more than a second after the first; one that comes within the second is not passed on. Before the
// SIGKILL mpicxrun prints one line that says which ranks hang, and where:
//
//	mpicxrun: still there 30s after SIGTERM, and killed: ranks 0, 2: Barrier #17 on world at step.go:88; rank 1: computing: nothing pending, last Barrier #16 on world at step.go:81; rank 3: stopped
//
// A process that does not tell where it is within a second is stopped, computing or waiting. A
// program that has not called Run, or was started with MPICX_DIAGNOSE=off, tells nothing. With
// -grace 0 there is no limit, and a second signal is passed on as the first.
//
// SIGUSR1 has one process print where all ranks are, and SIGQUIT does so before all Go programs
// print the stacks of their goroutines. See mpicx.Run.
//
// MPICXRUN_RANK and MPICXRUN_SIZE tell a process its rank and the number of processes with which
// the job begins. A program that a rank starts cannot be the same rank: start it without
// MPICXRUN_JOB in its environment if it uses mpicx itself.
//
// # Deaths
//
// A process has died if it ends, for whatever reason, while its Run needs other processes or
// other processes need it. In programs built with -tags ulfm the others survive. Any other job
// ends: Run returns an error at each remaining rank that says who has died. Processes that are
// still there two seconds later get a SIGTERM, and two seconds after that a SIGKILL. Mpicxrun
// prints to standard error who has died, and why, as far as the system tells: an exit status, a
// signal, or on Linux that the kernel needed the memory. If a signal that mpicxrun has passed on
// ended the processes, it says so in one line.
//
// # Fresh processes
//
// In a program that uses WithRespawn, Comm.Replace has mpicxrun start a fresh process for each dead
// one, with the same arguments and an empty standard input. Its MPICXRUN_RANK, and its label, is
// the next number after those of the processes so far. In the communicator that Replace makes it
// has the rank of the dead process. -respawn says how many processes can be started later; -n and
// -respawn are at most 128 together.
//
// # Exit status
//
//	0      all processes have ended with 0, or have survived the deaths of others and ended with 0
//	1-255  of the first process that has not, 128 and the signal's number if one has ended it;
//	       1 if it has died by exiting with 0
//	75     some have ended with 75, and all others with 0: a job that has stopped, to be continued
//	1      all have ended with 0, and mpicxrun could not write all of their output
//	2      the arguments make no sense
//	125    there can be no job: not on Windows, nor inside of mpirun or mpicxrun, nor if the system
//	       refuses what it needs
//	126    the program can't be started
//	127    there is no such program
//
// If SIGINT, SIGTERM, SIGHUP or SIGQUIT was passed on and has ended a process, the status is 128
// and the signal's number, whatever the other processes have ended with: 130 after Ctrl-C.
package main
