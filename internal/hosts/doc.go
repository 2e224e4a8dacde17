// Hosts is a program whose job loses a host, for internal/scripts/two-hosts: its processes
// add numbers until some of them are dead, and those that live go on with each other. What each
// finds it writes to a file, since a launcher loses output.
//
//	hosts -dir DIR [-end exit|kill] [-timeout 10s]
//
// It begins to add when it has written DIR/begun, and ends when DIR/stop is there.
package main
