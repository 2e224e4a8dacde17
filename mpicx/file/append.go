package file

import (
	"os"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/element"
)

// WriteShared writes the elements of buf at the end of the file, whatever the view, and ends with
// their number (MPI_File_iwrite_shared; the end of the file is the shared pointer). What several
// ranks write at a time is in any order. Each write is one write to a file opened with O_APPEND,
// so they do not overwrite each other, except on file systems that do not promise that, such as
// NFS.
func WriteShared[T any](f *File, buf []T) *future.Future[int] {
	b := element.Of(buf)
	return f.alone("WriteShared", 0, element.Buffer{Type: b.Type}, func(op *operation, _ []span, _ []byte) (int, error) {
		return f.write(op, []span{{Len: int64(len(b.Bytes))}}, b.Bytes, f.append)
	})
}

// append is WriteAt at the end of the file.
func (f *File) append(b []byte, _ int64) (n int, err error) {
	if f.end == nil {
		if f.end, err = os.OpenFile(f.name, os.O_WRONLY|os.O_APPEND, 0); err != nil {
			return 0, err
		}
	}
	return f.end.Write(b)
}

// WriteOrdered writes the elements of all ranks at the end of the file, in the order of ranks,
// whatever the view (MPI_File_write_ordered). It is collective. An error of the file system is an
// [*Error] at all ranks. Meanwhile nothing else may write at the end of the file.
func WriteOrdered[T any](f *File, buf []T) *future.Future[struct{}] {
	b := element.Of(buf)
	f.mu.Lock()
	_, bad := f.places("WriteOrdered", 0, element.Buffer{Type: b.Type})
	f.mu.Unlock()
	return f.together("WriteOrdered", func(op *operation) error {
		// Before the second exchange nobody writes, so rank 0 sees the end.
		if _, err := gather(op, 0); err != nil {
			return f.settle(op, "WriteOrdered", err)
		}
		var at int64
		if f.comm.Rank() == 0 && bad == nil {
			at, bad = f.Size()
		}
		all, err := gather(op, [2]int64{at, int64(len(b.Bytes))})
		if err != nil {
			return f.settle(op, "WriteOrdered", err)
		}
		at = all[0][0]
		for _, before := range all[:f.comm.Rank()] {
			at += before[1]
		}
		if bad == nil {
			_, bad = each(op, []span{{at, int64(len(b.Bytes))}}, b.Bytes, f.file.WriteAt)
		}
		return f.settle(op, "WriteOrdered", bad)
	})
}
