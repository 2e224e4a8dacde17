//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package machine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"time"

	"github.com/mpicx/go-mpicx/internal/transport/node"
)

var errUnsupported = fmt.Errorf("mpicxrun on %s: %w", runtime.GOOS, errors.ErrUnsupported)

// Begin returns an errors.ErrUnsupported.
func Begin(context.Context, *Place, bool) (*node.Job, error) { return nil, errUnsupported }

// Tell returns false: no launcher asks.
func Tell(func() string) bool { return false }

// Ending returns false.
func Ending(time.Duration) bool { return false }

// A Job cannot be made on this system.
type Job struct{}

// An Outcome is never returned on this system.
type Outcome struct{ State *os.ProcessState }

// Status returns 1.
func (Outcome) Status() int { return 1 }

// NewJob returns an errors.ErrUnsupported.
func NewJob(int, int) (*Job, error) { return nil, errUnsupported }

// Run returns an errors.ErrUnsupported.
func (*Job) Run(func(int) *exec.Cmd, <-chan os.Signal, func(string)) ([]Outcome, error) {
	return nil, errUnsupported
}

// Close does nothing.
func (*Job) Close() {}
