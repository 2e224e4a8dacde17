//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package node

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A process that knows the name of the shared memory opens nothing but that, and changes nothing.
func TestOpenMemory(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, mode os.FileMode, length int) string {
		name = filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(name, make([]byte, length), mode))
		return name
	}
	good := file("good", 0o600, 64)
	f, err := openMemory(good, 64)
	require.NoError(t, err)
	require.NoError(t, f.Close())

	link, pipe := filepath.Join(dir, "link"), filepath.Join(dir, "pipe")
	require.NoError(t, os.Symlink(good, link))
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	others := file("others", 0o600, 64)
	for _, name := range []string{link, pipe, dir, file("short", 0o600, 63), file("open to all", 0o644, 64)} {
		_, err := openMemory(name, 64)
		require.Error(t, err, name)
	}
	if os.Chown(others, 12345, -1) == nil { // root may
		_, err := openMemory(others, 64)
		require.ErrorContains(t, err, "expected a file of user")
	}
}
