// Hosts is a program whose job loses a host, for internal/lab/scripts/two-hosts. Its processes add
// numbers until some of them are dead, and the survivors continue with each other. Each process
// writes its results to a file, because launchers lose output.
//
//	hosts -dir DIR [-end exit|kill] [-timeout 10s]
//
// It writes DIR/begun once it has begun to add, and ends when DIR/stop exists.
package main
