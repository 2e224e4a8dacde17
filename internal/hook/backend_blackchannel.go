//go:build !ulfm

package hook

// Chosen is the error backend that the build tags choose.
const Chosen = BlackChannel
