package distributed

import (
	"context"
	"fmt"
	"io"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/sparse"
)

// ReadFile reads a matrix in Matrix Market format as [sparse.ReadFile] does. Rank 0
// alone needs the file. No rank ever holds more of the matrix than its rows, up to
// their division. It is collective, and rank 0 alone has the error: call it inside
// Try, which tells the others.
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

// Read is ReadFile from a reader, which counts at rank 0 only. The name stands in
// errors only.
func Read(ctx context.Context, comm *mpicx.Comm, r io.Reader, name string) (*Matrix, error) {
	var s *sparse.Scanner
	head := make([]int, 2)
	if comm.Rank() == 0 {
		var err error
		if s, err = sparse.NewScanner(r, name); err != nil {
			return nil, err
		}
		head[0], head[1] = s.Rows, s.Cols
		if s.Rows != s.Cols {
			return nil, fmt.Errorf("%s: %d x %d, expected a square matrix", name, s.Rows, s.Cols)
		}
	}
	if err := mpicx.Bcast(comm, head, 0).Wait(ctx); err != nil {
		return nil, err
	}
	// At first each rank gets the same number of rows. The number of entries is not known before the
	// end.
	n, size := head[0], comm.Size()
	offsets := make([]int, size+1)
	for q := range offsets {
		offsets[q] = int(int64(n) * int64(q) / int64(size))
	}
	var mine []sparse.Triplet
	var err error
	if comm.Rank() == 0 {
		mine, err = deal(ctx, comm, offsets, s)
	} else {
		mine, err = take(ctx, comm)
	}
	if err != nil {
		return nil, err
	}
	lo := offsets[comm.Rank()]
	rows, err := rowsOf(mine, offsets, comm.Rank())
	if err != nil {
		return nil, err
	}
	if err := rows.CheckSums(lo, name); err != nil {
		return nil, err
	}
	return New(ctx, comm, n, Block{lo, rows})
}

// deal sends the entries to the ranks that have their rows, and returns rank 0's.
func deal(ctx context.Context, comm *mpicx.Comm, offsets []int, s *sparse.Scanner) ([]sparse.Triplet, error) {
	hands := make([][]sparse.Triplet, comm.Size())
	full := max(256, batch/comm.Size())
	send := func(q int) error {
		p := newPacket(len(hands[q]))
		for k, t := range hands[q] {
			p.set(k, t)
		}
		hands[q] = hands[q][:0]
		if err := mpicx.Send(comm, p.places, q, entriesTag).Wait(ctx); err != nil || len(p.vals) == 0 {
			return err
		}
		return mpicx.Send(comm, p.vals, q, entriesTag).Wait(ctx)
	}
	for t, err := range s.Entries() {
		if err != nil {
			return nil, err
		}
		q := owner(offsets, t.Row)
		if hands[q] = append(hands[q], t); q != 0 && len(hands[q]) == full {
			if err := send(q); err != nil {
				return nil, err
			}
		}
	}
	for q := 1; q < comm.Size(); q++ {
		if len(hands[q]) > 0 {
			if err := send(q); err != nil {
				return nil, err
			}
		}
		if err := send(q); err != nil { // an empty message marks the end
			return nil, err
		}
	}
	return hands[0], nil
}

// take receives the entries that rank 0 deals.
func take(ctx context.Context, comm *mpicx.Comm) (entries []sparse.Triplet, err error) {
	for {
		var p packet
		if p.places, err = mpicx.RecvSlice[uint64](comm, 0, entriesTag).Get(ctx); err != nil || len(p.places) == 0 {
			return entries, err
		}
		p.vals = make([]float64, len(p.places))
		if err := mpicx.Recv(comm, p.vals, 0, entriesTag).Wait(ctx); err != nil {
			return nil, err
		}
		entries = p.appendTo(entries)
	}
}
