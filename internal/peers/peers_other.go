//go:build !unix

package peers

import (
	"context"
	"errors"
	"fmt"
	"runtime"
)

// Supported says whether this system has what it takes.
const Supported = false

// Peers is this process's connections with the others: there are none here.
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

// Leave does nothing.
func (*Peers) Leave() {}

// Close does nothing.
func (*Peers) Close() error { return nil }
