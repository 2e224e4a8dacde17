// Kills runs jobs of real processes that end in every way at random moments, and sees what
// becomes of the others: whether they go on, with exact values, and all alike.
//
//	go build -tags "mpi ulfm" -o /tmp/kills ./internal/kills
//	/tmp/kills -for 5m mpirun --with-ft ulfm --oversubscribe …
//
// It starts itself, behind what is given, -n and a number. What a process finds it writes
// to a file, since a launcher loses output.
package main
