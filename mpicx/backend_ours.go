//go:build !native

package mpicx

import "github.com/mpicx/go-mpicx/internal/transport"

// Without -tags native the error backend uses its own protocols.
func library(*Comm) transport.Library { return nil }
