package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/element"
	"github.com/mpicx/go-mpicx/internal/hook"
)

// Write writes the elements of buf to the view, from position at on, and ends with their number
// (MPI_File_iwrite_at). The buffer is the operation's until its future is done. Elements are
// written as they are in memory, so files move between machines of one byte order. T is of a fixed
// size and has no pointers.
//
// A write that fails is also an error of the next Sync, at all ranks.
func Write[T any](f *File, at int64, buf []T) *future.Future[int] {
	return f.alone("Write", at, element.Of(buf), f.writeAt)
}

// Read reads elements of the view, from position at on, into buf, and ends with their number
// (MPI_File_iread_at). There are fewer than len(buf) if the file has ended.
func Read[T any](f *File, at int64, buf []T) *future.Future[int] {
	return f.alone("Read", at, element.Of(buf), f.read)
}

// alone begins an operation of this rank alone, for which move moves the bytes.
func (f *File) alone(name string, at int64, buf element.Buffer, move func(*operation, []span, []byte) (int, error)) *future.Future[int] {
	f.mu.Lock()
	defer f.mu.Unlock()
	places, err := f.places(name, at, buf)
	if err != nil {
		return future.Failed[int](err)
	}
	op, done, end := hook.Of(f.comm).BeginCount(name, 0)
	if op == nil {
		return done
	}
	f.next(func() {
		n, err := move(&operation{Background: op}, places, buf.Bytes)
		end(n/max(1, buf.Size), f.wrapped(name, err))
	})
	return done
}

// places returns where the elements of a buffer are in the file. The caller holds mu.
func (f *File) places(name string, at int64, buf element.Buffer) ([]span, error) {
	if f.closed {
		return nil, f.isClosed(name)
	}
	if buf.Unfit != nil {
		return nil, fmt.Errorf("file: %s of %s: %w", name, f.name, buf.Unfit)
	}
	spans, err := f.view.spans(at, len(buf.Bytes)/max(1, buf.Size), buf.Size)
	if err != nil {
		return nil, fmt.Errorf("file: %s of %s: %w", name, f.name, err)
	}
	return slices.Collect(spans), nil
}

// wrapped says which operation an error of the system has ended. Errors of the communicator stay
// as they are.
func (f *File) wrapped(name string, err error) error {
	if s, ok := errors.AsType[*systemError](err); ok {
		return fmt.Errorf("file: %s: %w", name, s.error)
	}
	return err
}

// systemError is an error of the file system.
type systemError struct{ error }

// portion is how many bytes are moved at most before the operation looks whether an error of the
// communicator has ended it.
const portion = 4 << 20

// each calls do with consecutive parts of b and their places, until one fails or there is an error
// of the communicator. It returns how many bytes were moved.
func each(op *operation, places []span, b []byte, do func(b []byte, at int64) (int, error)) (moved int, err error) {
	for _, s := range places {
		for s.Len > 0 {
			if err := op.Late(); err != nil {
				return moved, err
			}
			want := min(s.Len, portion)
			n, err := do(b[moved:][:want], s.At)
			moved += n
			if err != nil {
				return moved, err
			}
			s.At, s.Len = s.At+want, s.Len-want
		}
	}
	return moved, nil
}

func (f *File) writeAt(op *operation, places []span, b []byte) (int, error) {
	return f.write(op, places, b, f.file.WriteAt)
}

// write is each with a function that writes. An error of it is one of the next Sync.
func (f *File) write(op *operation, places []span, b []byte, do func([]byte, int64) (int, error)) (int, error) {
	n, err := each(op, places, b, do)
	if err != nil && op.Late() == nil {
		if f.failed == nil {
			f.failed = err
		}
		err = &systemError{err}
	}
	return n, err
}

func (f *File) read(op *operation, places []span, b []byte) (int, error) {
	n, err := each(op, places, b, f.file.ReadAt)
	switch {
	case errors.Is(err, io.EOF):
		return n, nil
	case err != nil && op.Late() == nil:
		return n, &systemError{err}
	}
	return n, err
}

// ReadAt implements io.ReaderAt: it reads bytes of the file, whatever the view, and returns when
// the operations that were begun before have ended.
func (f *File) ReadAt(p []byte, off int64) (n int, err error) {
	n, err = f.bytes("Read", off, p, f.read)
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return n, err
}

// WriteAt implements io.WriterAt: it writes bytes of the file, whatever the view, and returns when
// the operations that were begun before have ended.
func (f *File) WriteAt(p []byte, off int64) (n int, err error) {
	return f.bytes("Write", off, p, f.writeAt)
}

func (f *File) bytes(name string, off int64, p []byte, move func(*operation, []span, []byte) (int, error)) (n int, err error) {
	done := f.alone(name, 0, element.Buffer{Type: element.TypeOf[byte]()}, func(op *operation, _ []span, _ []byte) (int, error) {
		n, err = move(op, []span{{off, int64(len(p))}}, p)
		return n, err
	})
	if told := done.Wait(context.Background()); told != nil {
		return n, told
	}
	return n, nil
}
