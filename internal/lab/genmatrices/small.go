package main

import (
	"bytes"
	"fmt"
	"strings"
)

// hilbert returns the n x n Hilbert matrix in array format.
func hilbert(n int, comment string) []byte {
	buf := array("symmetric", comment, n, n)
	for j := range n {
		for i := j; i < n; i++ {
			fmt.Fprintln(buf, 1/float64(i+j+1))
		}
	}
	return buf.Bytes()
}

// hilbertSums returns its row sums, in array format.
func hilbertSums(n int, comment string) []byte {
	buf := array("general", comment, n, 1)
	for i := range n {
		sum := 0.0
		for j := range n {
			sum += 1 / float64(i+j+1)
		}
		fmt.Fprintln(buf, sum)
	}
	return buf.Bytes()
}

// array returns the head of a file in array format.
func array(symmetry, comment string, rows, cols int) *bytes.Buffer {
	var buf bytes.Buffer
	fmt.Fprintf(&buf, "%%%%MatrixMarket matrix array real %s\n%s\n%d %d\n", symmetry, comments(comment, "\n"), rows, cols)
	return &buf
}

// literal returns a function that puts the comment where text has "%COMMENT".
func literal(text string) func(string) ([]byte, error) {
	end := "\n"
	if strings.Contains(text, "\r\n") {
		end = "\r\n"
	}
	return func(comment string) ([]byte, error) {
		return []byte(strings.Replace(text, "%COMMENT", comments(comment, end), 1)), nil
	}
}

// comments returns the lines of text as comments, end between them.
func comments(text, end string) string {
	return "% " + strings.ReplaceAll(text, "\n", end+"% ")
}
