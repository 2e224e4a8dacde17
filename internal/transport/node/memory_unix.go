//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package node

import (
	"fmt"
	"os"
	"syscall"
)

// openMemory opens a memory file of size bytes that another process of this user has made. It returns an
// error for any other file, and does not change it.
func openMemory(name string, size int) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		s, ok := info.Sys().(*syscall.Stat_t)
		if !ok || int(s.Uid) != os.Geteuid() || info.Mode() != 0o600 || info.Size() != int64(size) {
			err = fmt.Errorf("%s: %v of %d bytes, expected a file of user %d, %v, of %d", name, info.Mode(), info.Size(), os.Geteuid(), os.FileMode(0o600), size)
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// mapMemory maps a file into memory, for all that map it.
func mapMemory(file *os.File, size int) ([]byte, error) {
	b, err := syscall.Mmap(int(file.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, &os.PathError{Op: "mmap", Path: file.Name(), Err: err}
	}
	return b, nil
}
