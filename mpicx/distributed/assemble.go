package distributed

import (
	"context"
	"fmt"
	"sort"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/sparse"
)

// batch is the number of entries that a rank sends at a time. It needs additional memory for these,
// and for the entries that are sent to it.
const batch = 1 << 15

// balance returns where each rank's rows begin if the entries of the blocks are divided evenly. Rank
// 0 counts the entries, which takes 8 bytes for each row.
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

// redistribute sends the entries of all blocks to the ranks that have their rows by offsets, and
// returns this rank's rows.
func redistribute(ctx context.Context, comm *mpicx.Comm, offsets []int, blocks []Block) (*sparse.CSR, error) {
	entries, err := assemble(ctx, comm, offsets, func(add func(sparse.Triplet) error) error {
		for _, b := range blocks {
			for i := range b.Rows {
				cols, vals := b.Row(i)
				for k, j := range cols {
					if err := add(sparse.Triplet{Row: int32(b.First + i), Col: j, Val: vals[k]}); err != nil {
						return err
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return rowsOf(entries, offsets, comm.Rank())
}

// assemble returns the entries in this rank's rows. Each rank may add any entries of the matrix.
func assemble(ctx context.Context, comm *mpicx.Comm, offsets []int, produce func(add func(sparse.Triplet) error) error) ([]sparse.Triplet, error) {
	a := &assembler{comm: comm, offsets: offsets}
	if err := produce(func(t sparse.Triplet) error { return a.add(ctx, t) }); err != nil {
		return nil, err
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
	out := newPacket(len(a.to))
	for k, t := range a.to {
		out.set(at[owners[k]], t)
		at[owners[k]]++
	}
	a.to = a.to[:0]

	all := make([]bool, 1)
	dones := mpicx.Allreduce(a.comm, []bool{done}, all, mpicx.LAnd)
	if err := future.WaitAll(ctx, dones, mpicx.Alltoall(a.comm, sends, recvs)); err != nil {
		return false, err
	}
	in := newPacket(sum(recvs))
	if err := future.WaitAll(ctx, mpicx.Alltoallv(a.comm, out.vals, sends, in.vals, recvs),
		mpicx.Alltoallv(a.comm, out.places, sends, in.places, recvs)); err != nil {
		return false, err
	}
	a.owned = in.appendTo(a.owned)
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

// A packet is entries in the form in which they are sent.
type packet struct {
	places []uint64 // row and column
	vals   []float64
}

func newPacket(n int) packet { return packet{make([]uint64, n), make([]float64, n)} }

func (p packet) set(k int, t sparse.Triplet) {
	p.places[k], p.vals[k] = uint64(t.Row)<<32|uint64(t.Col), t.Val
}

func (p packet) appendTo(entries []sparse.Triplet) []sparse.Triplet {
	for k, place := range p.places {
		entries = append(entries, sparse.Triplet{Row: int32(place >> 32), Col: int32(uint32(place)), Val: p.vals[k]})
	}
	return entries
}
