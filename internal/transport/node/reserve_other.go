//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package node

import (
	"errors"
	"os"
)

func reserve(*os.File, int) error { return errors.ErrUnsupported }
