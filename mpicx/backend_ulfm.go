//go:build ulfm

package mpicx

import "github.com/mpicx/go-mpicx/internal/hook"

// Backend is the error backend that the build tags chose.
const Backend = hook.ULFM
