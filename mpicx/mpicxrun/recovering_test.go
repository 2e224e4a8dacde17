//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"context"
	"errors"

	"github.com/mpicx/go-mpicx/mpicx"
)

// recovering calls fn with the communicator of those that live, until all of these have
// succeeded.
func recovering(ctx context.Context, world *mpicx.Comm, fn func(ctx context.Context, c *mpicx.Comm) error) error {
	for c := world; ; {
		err := c.TryAll(ctx, func(ctx context.Context) error { return fn(ctx, c) })
		if _, corrupted := errors.AsType[*mpicx.CommCorruptedError](err); !corrupted {
			return err
		}
		next, shrinkErr := c.Shrink().Get(ctx)
		if shrinkErr != nil {
			return err
		}
		c = next
	}
}
