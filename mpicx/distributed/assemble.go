package distributed

import (
	"context"
	"fmt"
	"iter"
	"sort"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/sparse"
)

// batch is the number of entries that a rank sends at a time. It needs additional memory for these,
// and for the entries that are sent to it.
const batch = 1 << 15

// balance returns where each rank's rows begin if the entries of the blocks are divided evenly.
// Rank 0 counts the entries, which takes 8 bytes for each row.
func balance(ctx context.Context, comm *mpicx.Comm, n int, blocks []Block) ([]int, error) {
	var mine []int32 // for each block: its first row, number of rows, and number of entries of each row
	for _, b := range blocks {
		mine = append(mine, int32(b.First), int32(b.Rows))
		for i := range b.Rows {
			mine = append(mine, int32(b.RowPtr[i+1]-b.RowPtr[i]))
		}
	}
	lengths := make([]int, comm.Size())
	if err := mpicx.Allgather(comm, []int{len(mine)}, lengths).Wait(ctx); err != nil {
		return nil, err
	}
	var all []int32
	if comm.Rank() == 0 {
		all = make([]int32, sum(lengths))
	}
	if err := mpicx.Gatherv(comm, mine, all, lengths, 0).Wait(ctx); err != nil {
		return nil, err
	}
	offsets := make([]int, comm.Size()+1)
	if comm.Rank() == 0 {
		rowPtr := make([]int, n+1)
		for len(all) > 0 {
			first, rows := int(all[0]), int(all[1])
			for i, entries := range all[2 : 2+rows] {
				rowPtr[first+i+1] += int(entries)
			}
			all = all[2+rows:]
		}
		for i := range n {
			rowPtr[i+1] += rowPtr[i]
		}
		copy(offsets, sparse.Partition(rowPtr, comm.Size()))
	}
	return offsets, mpicx.Bcast(comm, offsets, 0).Wait(ctx)
}

// entriesOf returns the entries of all blocks.
func entriesOf(blocks ...Block) iter.Seq2[sparse.Triplet, error] {
	return func(yield func(sparse.Triplet, error) bool) {
		for _, b := range blocks {
			for i := range b.Rows {
				cols, vals := b.Row(i)
				for k, j := range cols {
					if !yield(sparse.Triplet{Row: int32(b.First + i), Col: j, Val: vals[k]}, nil) {
						return
					}
				}
			}
		}
	}
}

// assemble sends each entry to the rank whose rows, by offsets, include its row. It returns the
// entries in this rank's rows. Each rank may have any entries of the matrix. It is collective.
func assemble(ctx context.Context, comm *mpicx.Comm, offsets []int, entries iter.Seq2[sparse.Triplet, error]) ([]sparse.Triplet, error) {
	a := &assembler{comm: comm, offsets: offsets}
	for t, err := range entries {
		if err == nil {
			err = a.add(ctx, t)
		}
		if err != nil {
			return nil, err
		}
	}
	for done := false; !done; {
		var err error
		if done, err = a.exchange(ctx, true); err != nil {
			return nil, err
		}
	}
	return a.owned, nil
}

// An assembler sends entries to the ranks that have their rows.
type assembler struct {
	comm    *mpicx.Comm
	offsets []int
	to      []sparse.Triplet // entries for other ranks
	owned   []sparse.Triplet
}

// owner returns the rank that has the row.
func owner(offsets []int, row int32) int {
	return sort.Search(len(offsets)-2, func(r int) bool { return offsets[r+1] > int(row) })
}

func (a *assembler) add(ctx context.Context, t sparse.Triplet) error {
	if me := a.comm.Rank(); a.offsets[me] <= int(t.Row) && int(t.Row) < a.offsets[me+1] {
		a.owned = append(a.owned, t)
		return nil
	}
	if a.to = append(a.to, t); len(a.to) < batch {
		return nil
	}
	_, err := a.exchange(ctx, false)
	return err
}

// exchange sends the entries that all ranks have so far. It says whether all ranks are done.
func (a *assembler) exchange(ctx context.Context, done bool) (bool, error) {
	size := a.comm.Size()
	owners := make([]int, len(a.to))
	sends, recvs := make([]int, size), make([]int, size)
	for k, t := range a.to {
		owners[k] = owner(a.offsets, t.Row)
		sends[owners[k]]++
	}
	at := make([]int, size)
	for q := 1; q < size; q++ {
		at[q] = at[q-1] + sends[q-1]
	}
	places, vals := make([]uint64, len(a.to)), make([]float64, len(a.to)) // rows and columns, and values
	for k, t := range a.to {
		i := at[owners[k]]
		places[i], vals[i] = uint64(t.Row)<<32|uint64(t.Col), t.Val
		at[owners[k]]++
	}
	a.to = a.to[:0]

	all := make([]bool, 1)
	dones := mpicx.Allreduce(a.comm, []bool{done}, all, mpicx.LAnd)
	if err := future.WaitAll(ctx, dones, mpicx.Alltoall(a.comm, sends, recvs)); err != nil {
		return false, err
	}
	newPlaces, newVals := make([]uint64, sum(recvs)), make([]float64, sum(recvs))
	if err := future.WaitAll(ctx, mpicx.Alltoallv(a.comm, vals, sends, newVals, recvs),
		mpicx.Alltoallv(a.comm, places, sends, newPlaces, recvs)); err != nil {
		return false, err
	}
	for k, place := range newPlaces {
		a.owned = append(a.owned, sparse.Triplet{Row: int32(place >> 32), Col: int32(uint32(place)), Val: newVals[k]})
	}
	return all[0], nil
}

// rowsOf returns the matrix of the rank's rows.
func rowsOf(entries []sparse.Triplet, offsets []int, rank int) (*sparse.CSR, error) {
	lo, hi := offsets[rank], offsets[rank+1]
	for k := range entries {
		entries[k].Row -= int32(lo)
	}
	rows, err := sparse.NewCSR(hi-lo, offsets[len(offsets)-1], entries)
	if err != nil {
		return nil, fmt.Errorf("distributed: rows from %d: %w", lo, err)
	}
	return rows, nil
}
