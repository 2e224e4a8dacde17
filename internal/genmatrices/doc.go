// Genmatrices writes the matrices in testdata/matrices, and the README there.
// They are the same on every run and machine.
//
// Usage, at the top of the module:
//
//	go run ./internal/genmatrices [-dir testdata/matrices]
//
// It must never need what it writes, nor anything random.
package main
