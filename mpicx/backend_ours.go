//go:build !native

package mpicx

import "github.com/mpicx/go-mpicx/internal/transport"

// Without -tags native the protocols are our own.
func library(*Comm) transport.Library { return nil }
