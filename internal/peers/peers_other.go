//go:build !unix

package peers

import (
	"context"
	"errors"
	"fmt"
	"runtime"
)

// Peers has no connections on this system.
type Peers struct{}

// Listen returns an errors.ErrUnsupported.
func Listen(string, int, int) (*Peers, error) {
	return nil, fmt.Errorf("the ends of processes are not seen on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

// Join does nothing.
func (*Peers) Join(context.Context) error { return nil }

// Watch does nothing.
func (*Peers) Watch(func(index int)) {}

// Look does nothing.
func (*Peers) Look() {}

// Marks returns none.
func (*Peers) Marks() []*uint32 { return nil }

// Kill returns an errors.ErrUnsupported.
func (*Peers) Kill(int) error { return errors.ErrUnsupported }

// Leave does nothing.
func (*Peers) Leave() {}

// Close does nothing.
func (*Peers) Close() error { return nil }
