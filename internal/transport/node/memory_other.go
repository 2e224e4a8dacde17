//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package node

import (
	"errors"
	"os"
)

// mapMemory says that processes share no memory here: the fabric carries everything.
func mapMemory(*os.File, int) ([]byte, error) { return nil, errors.ErrUnsupported }

func openMemory(string, int) (*os.File, error) { return nil, errors.ErrUnsupported }
