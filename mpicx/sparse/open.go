package sparse

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
)

// Open opens the named file for reading. If the file is compressed by gzip, which its first
// bytes show, reads return the plain text. The name need not show it. Files of other programs, such
// as bzip2, xz and zstd, have to be unpacked before: the errors of [Read] say what they are.
func Open(name string) (io.ReadCloser, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	in := bufio.NewReader(f)
	if magic, _ := in.Peek(2); !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return &file{in, f}, nil
	}
	z, err := gzip.NewReader(in)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", name, gzipError(err))
	}
	return &file{z, f}, nil
}

// A file reads from its Reader, and closes its Closer.
type file struct {
	io.Reader
	io.Closer
}

func (f *file) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	return n, gzipError(err)
}

// gzipError describes what is wrong with the compressed file.
func gzipError(err error) error {
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("the compressed file ends in the middle, expected all of it: %w", err)
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum):
		return fmt.Errorf("the compressed file is damaged: %w", err)
	}
	return err
}
