package distributed

import (
	"context"
	"fmt"
	"io"

	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/sparse"
)

// ReadFile reads a matrix in Matrix Market format as [sparse.ReadFile] does. Rank 0 alone needs the
// file. No rank ever holds more of the matrix than its rows, up to their division. It is
// collective, and rank 0 alone has the error: call it inside Try, which tells the others.
func ReadFile(ctx context.Context, comm *mpicx.Comm, name string) (*Matrix, error) {
	var f io.ReadCloser
	if comm.Rank() == 0 {
		var err error
		if f, err = sparse.Open(name); err != nil {
			return nil, err
		}
		defer f.Close()
	}
	return Read(ctx, comm, f, name)
}

// Read is ReadFile from a reader, which counts at rank 0 only. The name stands in errors only.
func Read(ctx context.Context, comm *mpicx.Comm, r io.Reader, name string) (m *Matrix, err error) {
	defer hook.Catch(&err)
	text := entriesOf() // at rank 0: those of the file
	head := make([]int, 1)
	if comm.Rank() == 0 {
		s, err := sparse.NewScanner(r, name)
		if err != nil {
			return nil, err
		}
		if s.Rows != s.Cols {
			return nil, fmt.Errorf("%s: %d x %d, expected a square matrix", name, s.Rows, s.Cols)
		}
		head[0] = s.Rows
		text = func(yield func(sparse.Triplet) bool) {
			for t, err := range s.Entries() {
				mpicx.Throw(err)
				if !yield(t) {
					return
				}
			}
		}
	}
	mpicx.Bcast(comm, head, 0).MustWait(ctx)
	// At first each rank gets the same number of rows. The number of entries is not known before
	// the end.
	n, size := head[0], comm.Size()
	offsets := make([]int, size+1)
	for q := range offsets {
		offsets[q] = int(int64(n) * int64(q) / int64(size))
	}
	entries := assemble(ctx, comm, offsets, text)
	lo := offsets[comm.Rank()]
	rows := rowsOf(entries, offsets, comm.Rank())
	mpicx.Throw(rows.CheckSums(lo, name))
	return New(ctx, comm, n, Block{lo, rows})
}
