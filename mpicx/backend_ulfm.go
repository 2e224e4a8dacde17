//go:build ulfm

package mpicx

// Backend is the error backend that the build tags chose.
const Backend = backendULFM
