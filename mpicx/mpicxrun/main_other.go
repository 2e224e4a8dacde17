//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package main

import (
	"fmt"
	"os"

	"github.com/mpicx/go-mpicx/internal/machine"
)

func main() {
	_, err := machine.NewJob(1, 0)
	fmt.Fprintln(os.Stderr, "mpicxrun:", err)
	os.Exit(125)
}
