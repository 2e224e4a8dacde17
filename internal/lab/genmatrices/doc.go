// Genmatrices writes the matrices in testdata/matrices, and the README there. They are the same on
// every run and machine.
//
// Usage, in the root of the module:
//
//	go -C internal/lab run ./genmatrices [-dir ../../testdata/matrices]
//
// It must never depend on the files that it writes, or on anything random.
package main
