//go:build !unix

package mpicxtest

import (
	"errors"
	"time"
)

func killBy(string) error { return errors.ErrUnsupported }

func stop(time.Duration) error { return errors.ErrUnsupported }
