// Package exampletest checks the output of examples in which ranks die. It must never know what
// they do.
//
// The documentation of a package shows the examples that compile without build tags, and go test
// runs those that end with "Output:". An example in which ranks die has to be shown, but runs only
// with -tags ulfm. So it is in a file without a tag, and ends with a comment that go test ignores
// and Check compares:
//
//	// With -tags ulfm this prints:
//	// rank 0: 2 ranks are left
package exampletest
