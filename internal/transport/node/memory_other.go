//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package node

import (
	"errors"
	"os"
)

// MakeFile says that processes share no memory here: the fabric carries everything.
func MakeFile(string, int) (*os.File, error) { return nil, errors.ErrUnsupported }

// MapFile does the same.
func MapFile(string, int) ([]byte, error) { return nil, errors.ErrUnsupported }
