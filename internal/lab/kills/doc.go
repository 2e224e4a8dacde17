// Kills runs jobs of real processes that end in every way at random moments, and checks that the
// survivors continue, with exact values and the same results at all of them.
//
//	go build -C internal/lab -tags "mpi ulfm" -o /tmp/kills ./kills
//	/tmp/kills -for 5m mpirun --with-ft ulfm --oversubscribe …
//
// It appends -n, a number and itself to the given command. Each process writes its results to a
// file, because launchers lose output.
package main
