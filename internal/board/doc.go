// Package board has the board of a communicator whose ranks share memory. It shows the collective
// calls of the ranks to each other, and carries out short ones without messages.
package board
