//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package machine

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/mpicx/go-mpicx/internal/transport/node"
)

var errUnsupported = fmt.Errorf("mpicxrun on %s: %w", runtime.GOOS, errors.ErrUnsupported)

// Begin returns an errors.ErrUnsupported.
func Begin(context.Context, *Place, bool) (*node.Job, error) { return nil, errUnsupported }

// A Job is none here.
type Job struct{}

// NewJob returns an errors.ErrUnsupported.
func NewJob(int) (*Job, error) { return nil, errUnsupported }
