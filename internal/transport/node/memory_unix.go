//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package node

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// MakeFile makes a file of this many zeros, and reserves memory for them. Otherwise the first
// process that touches the memory might find that there is none.
func MakeFile(name string, size int) (*os.File, error) {
	// O_EXCL: a file that is already there is not this process's.
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err = reserve(f, size); errors.Is(err, errors.ErrUnsupported) {
		_, err = f.Write(make([]byte, size))
	}
	if err != nil {
		_ = f.Close()
		_ = os.Remove(name)
		return nil, err
	}
	return f, nil
}

// openMemory opens a memory file of size bytes that another process of this user has made. It
// returns an error for any other file, and does not change it.
func openMemory(name string, size int) (*os.File, error) {
	// The name came from another process, and may be that of a link, or of a pipe, whose opening
	// would block.
	f, err := os.OpenFile(name, os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	// A file that is shorter than its mapping would end this process at the first access beyond its
	// end.
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

// MapFile maps a file of size bytes into memory, shared with all processes that map it.
func MapFile(name string, size int) ([]byte, error) {
	f, err := openMemory(name, size)
	if err != nil {
		return nil, err
	}
	// The mapping outlives the open file.
	defer f.Close()
	b, err := syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, &os.PathError{Op: "mmap", Path: name, Err: err}
	}
	return b, nil
}
