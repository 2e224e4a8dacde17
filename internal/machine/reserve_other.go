//go:build unix && !linux

package machine

import (
	"errors"
	"os"
)

func reserve(*os.File, int) error { return errors.ErrUnsupported }
