package distributed

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sort"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/sparse"
)

// The functions below throw their errors, which the exported functions catch.

// batch is the number of entries that a rank sends at a time. It needs additional memory for these,
// and for the entries that are sent to it.
const batch = 1 << 15

// balance returns where each rank's rows begin if the entries of the blocks are divided evenly.
// Rank 0 counts the entries, which takes 8 bytes for each row.
func balance(ctx context.Context, comm *mpicx.Comm, n int, blocks []Block) []int {
	var mine []int32 // for each block: its first row, number of rows, and number of entries of each row
	for _, b := range blocks {
		mine = append(mine, int32(b.First), int32(b.Rows))
		for i := range b.Rows {
			mine = append(mine, int32(b.RowPtr[i+1]-b.RowPtr[i]))
		}
	}
	all := mpicx.GatherValue(comm, mine, 0).MustGet(ctx)
	offsets := make([]int, comm.Size()+1)
	if comm.Rank() == 0 {
		rowPtr := make([]int, n+1)
		for _, of := range all {
			for len(of) > 0 {
				first, rows := int(of[0]), int(of[1])
				for i, entries := range of[2 : 2+rows] {
					rowPtr[first+i+1] += int(entries)
				}
				of = of[2+rows:]
			}
		}
		for i := range n {
			rowPtr[i+1] += rowPtr[i]
		}
		offsets = sparse.Partition(rowPtr, comm.Size())
	}
	mpicx.Bcast(comm, offsets, 0).MustWait(ctx)
	return offsets
}

// entriesOf returns the entries of all blocks.
func entriesOf(blocks ...Block) iter.Seq[sparse.Triplet] {
	return func(yield func(sparse.Triplet) bool) {
		for _, b := range blocks {
			for i := range b.Rows {
				cols, vals := b.Row(i)
				for k, j := range cols {
					if !yield(sparse.Triplet{Row: int32(b.First + i), Col: j, Val: vals[k]}) {
						return
					}
				}
			}
		}
	}
}

// assemble sends each entry to the rank whose rows, by offsets, include its row. It returns the
// entries in this rank's rows. Each rank may have any entries of the matrix. It is collective.
func assemble(ctx context.Context, comm *mpicx.Comm, offsets []int, entries iter.Seq[sparse.Triplet]) []sparse.Triplet {
	a := &assembler{comm: comm, sends: make([][]sparse.Triplet, comm.Size())}
	for t := range entries {
		q := owner(offsets, t.Row)
		if q == comm.Rank() {
			a.owned = append(a.owned, t)
			continue
		}
		a.sends[q] = append(a.sends[q], t)
		if a.count++; a.count == batch {
			a.exchange(ctx, false)
		}
	}
	for !a.exchange(ctx, true) {
	}
	return a.owned
}

// owner returns the rank that has the row.
func owner(offsets []int, row int32) int {
	return sort.Search(len(offsets)-2, func(r int) bool { return offsets[r+1] > int(row) })
}

// An assembler sends entries to the ranks that have their rows.
type assembler struct {
	comm  *mpicx.Comm
	sends [][]sparse.Triplet // by rank: the entries to send to it
	count int                // of entries to send
	owned []sparse.Triplet
}

// exchange sends the entries that all ranks have so far. It says whether all ranks are done.
func (a *assembler) exchange(ctx context.Context, done bool) bool {
	sends, recvs := make([]int, len(a.sends)), make([]int, len(a.sends))
	for q, entries := range a.sends {
		sends[q] = len(entries)
	}
	all := make([]bool, 1)
	dones := mpicx.Allreduce(a.comm, []bool{done}, all, mpicx.LAnd)
	mpicx.Throw(future.WaitAll(ctx, dones, mpicx.Alltoall(a.comm, sends, recvs)))
	came := make([]sparse.Triplet, sum(recvs))
	mpicx.Alltoallv(a.comm, slices.Concat(a.sends...), sends, came, recvs).MustWait(ctx)
	a.owned = append(a.owned, came...)
	clear(a.sends) // their memory too: the next batch may go to other ranks
	a.count = 0
	return all[0]
}

// rowsOf returns the matrix of the rank's rows.
func rowsOf(entries []sparse.Triplet, offsets []int, rank int) *sparse.CSR {
	lo, hi := offsets[rank], offsets[rank+1]
	for k := range entries {
		entries[k].Row -= int32(lo)
	}
	rows, err := sparse.NewCSR(hi-lo, offsets[len(offsets)-1], entries)
	if err != nil {
		mpicx.Throw(fmt.Errorf("distributed: rows from %d: %w", lo, err))
	}
	return rows
}
