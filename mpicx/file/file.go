package file

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"syscall"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/mpicx"
)

// A File is a file that all ranks of a communicator have opened together (MPI_File). Its methods
// and the functions of this package may be called from several goroutines. All ranks make the
// collective calls in the same order.
type File struct {
	comm *mpicx.Comm // a duplicate: errors of the communicator end what is done here, too (D1)
	file *os.File
	name string

	mu     sync.Mutex
	view   View
	last   chan struct{} // closed when the operation that was begun last has ended
	closed bool

	// What carries out the operations, one after another, owns these fields.

	end    *os.File // opened with O_APPEND; nil: not yet
	failed error    // of the writes since the last Sync, the first error
	lost   error    // of the first fsync that has failed
}

// Open opens a file at all ranks of c (MPI_File_open). It is collective: all ranks call it with
// the same name and flags, those of os.OpenFile without O_APPEND. Rank 0 opens the file first, and
// alone creates or truncates it. If a rank can't open it, all ranks get an [*Error].
//
// An error or a death that comes meanwhile ends Open as any collective operation.
func Open(ctx context.Context, c *mpicx.Comm, name string, flag int, perm fs.FileMode) (*File, error) {
	if flag&os.O_APPEND != 0 {
		return nil, fmt.Errorf("file: Open of %s with O_APPEND, expected flags without it: WriteShared appends", name)
	}
	own, err := c.Dup().Get(ctx)
	if err != nil {
		return nil, err
	}
	f := &File{comm: own, name: name, last: make(chan struct{})}
	close(f.last)
	err = f.together("Open", func(op *operation) error {
		var bad error
		if own.Rank() == 0 {
			f.file, bad = os.OpenFile(name, flag, perm)
		}
		first, err := f.gather(op, "Open", bad)
		if err == nil && first == nil && own.Rank() > 0 {
			f.file, bad = os.OpenFile(name, flag&^(os.O_CREATE|os.O_EXCL|os.O_TRUNC), perm)
		}
		return f.settle(op, "Open", bad)
	}).Wait(ctx)
	if err != nil {
		f.Release()
		return nil, err
	}
	return f, nil
}

// together begins a collective operation, which run carries out when those before have ended. Its
// future ends alike at all living ranks if the last that run calls is settle.
func (f *File) together(name string, run func(*operation) error) *future.Future[struct{}] {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return future.Failed[struct{}](f.isClosed(name))
	}
	op, done := hook.Of(f.comm).Begin(name, 1)
	if op == nil {
		return done
	}
	op.Reserve()
	f.next(func() { op.End(run(&operation{Background: op, name: name})) })
	return done
}

// next has run called when the operations before have ended. The caller holds mu.
func (f *File) next(run func()) {
	before, ended := f.last, make(chan struct{})
	f.last = ended
	go func() {
		defer close(ended)
		<-before
		run()
	}()
}

func (f *File) isClosed(name string) error {
	return fmt.Errorf("file: %s of %s: %w", name, f.name, fs.ErrClosed)
}

// Sync returns when everything that all ranks have written before is on the disk (MPI_File_sync,
// and an fsync at each rank). It is collective. All living ranks get the same result: nil, or an
// [*Error] of the lowest rank at which a write since the last Sync or the fsync has failed, or the
// error of a death. An fsync that has failed once stays failed until the file is opened anew,
// because the system has forgotten what it could not write.
func (f *File) Sync() *future.Future[struct{}] {
	return f.together("Sync", func(op *operation) error { return f.settle(op, "Sync", f.sync(op)) })
}

func (f *File) sync(op *operation) error {
	if op.Late() != nil {
		return nil // settle ends with that
	}
	bad := f.failed
	f.failed = nil
	if f.lost == nil {
		if f.lost = f.file.Sync(); errors.Is(f.lost, syscall.EINVAL) {
			f.lost = nil // it is a device
		}
	}
	return cmp.Or(bad, f.lost)
}

// Close is Sync, and then closes the file at this rank whatever the result (MPI_File_close).
func (f *File) Close() *future.Future[struct{}] {
	done := f.Sync()
	f.Release()
	return done
}

// Release gives up this rank's File and waits for nobody. Operations that were begun before are
// carried out. It is right in a defer: after Close it does nothing. In a panic it corrupts the
// file's communicator, as [mpicx.Comm.Release] does.
func (f *File) Release() {
	if f == nil {
		return
	}
	if v := recover(); v != nil {
		defer func() {
			defer f.comm.Release() // it sees the panic
			panic(v)
		}()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		f.closed = true
		f.next(func() {
			_, _ = f.file.Close(), f.end.Close() // Sync has told of errors; nil if they are not open
			f.comm.Release()
		})
	}
}

// Size returns the size of the file in bytes, as this rank sees it (MPI_File_get_size).
func (f *File) Size() (int64, error) {
	info, err := f.file.Stat()
	if err != nil {
		return 0, fmt.Errorf("file: Size of %s: %w", f.name, err)
	}
	return info.Size(), nil
}

// SetSize cuts the file off at a size in bytes, or extends it with zeros (MPI_File_set_size). It
// is collective, and takes place when the operations of all ranks that were begun before have
// ended.
func (f *File) SetSize(bytes int64) *future.Future[struct{}] {
	return f.together("SetSize", func(op *operation) error {
		bad, err := f.gather(op, "SetSize", nil)
		if err == nil && bad == nil && f.comm.Rank() == 0 && op.Late() == nil {
			err = f.file.Truncate(bytes)
		}
		return f.settle(op, "SetSize", err)
	})
}

// Revoke ends all operations on the file at every rank, now and later (MPI_File_revoke, invalidate
// in paper 001). It is [mpicx.Comm.Revoke] of the file's communicator, and needs -tags ulfm.
func (f *File) Revoke(ctx context.Context) error { return f.comm.Revoke(ctx) }

// Failed returns the ranks that this rank knows to be dead (MPI_File_get_failed).
func (f *File) Failed() []int { return f.comm.Failed() }
