package distributed

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/krylov"
	"github.com/mpicx/go-mpicx/mpicx/sparse"
)

// haloTag is the tag of messages of the halo.
const haloTag = 1

// A Block is consecutive rows of a matrix. Its row 0 is row First of the matrix,
// its columns are the matrix's.
type Block struct {
	First int
	*sparse.CSR
}

// A Matrix is a square matrix whose rows are divided among the ranks of a
// communicator in contiguous blocks. A vector is divided likewise: each rank has
// the elements of its rows. It is a krylov.Operator.
type Matrix struct {
	Offsets []int // rank r has the rows Offsets[r] to Offsets[r+1]-1

	comm       *mpicx.Comm
	local      *local
	ghosts     []float64
	neighbours []neighbour
	pending    []future.Waiter // reused
}

// A neighbour is a rank to exchange elements of x with before a product. If the pattern of the
// matrix is not symmetric, there may be some to send and none to receive, or the other way round.
type neighbour struct {
	rank   int
	send   []int32   // which owned elements to send, counted from the first, increasing
	buf    []float64 // room for them
	lo, hi int       // the elements received are ghosts lo to hi-1, in the order sent
}

// New returns the matrix of n rows that the ranks have between them in blocks,
// each rank any number of them. The rows come to where the entries are divided
// most evenly ([sparse.Partition]); rows in no block are empty, entries at the same
// place are added up. It is collective: if it may fail, call it inside Try.
func New(ctx context.Context, comm *mpicx.Comm, n int, blocks ...Block) (m *Matrix, err error) {
	for _, b := range blocks {
		if b.First < 0 || b.First+b.Rows > n || b.Cols != n {
			return nil, fmt.Errorf("distributed: a block of %d rows from %d on and %d columns, expected it inside %d x %d", b.Rows, b.First, b.Cols, n, n)
		}
	}
	defer hook.Catch(&err)
	offsets := balance(ctx, comm, n, blocks)
	entries := assemble(ctx, comm, offsets, entriesOf(blocks...))
	return newMatrix(ctx, comm, offsets, rowsOf(entries, offsets, comm.Rank())), nil
}

// newMatrix returns the matrix of which each rank gives its rows. It tells the owners of ghosts
// which ranks need them.
func newMatrix(ctx context.Context, comm *mpicx.Comm, offsets []int, rows *sparse.CSR) *Matrix {
	size, first := comm.Size(), offsets[comm.Rank()]
	m := &Matrix{Offsets: offsets, comm: comm, local: localize(rows, first)}
	m.ghosts = make([]float64, len(m.local.ghosts))

	needed, asked := make([]int, size), make([]int, size)
	for _, col := range m.local.ghosts {
		needed[owner(offsets, col)]++
	}
	mpicx.Alltoall(comm, needed, asked).MustWait(ctx)
	send := make([]int32, sum(asked))
	mpicx.Alltoallv(comm, m.local.ghosts, needed, send, asked).MustWait(ctx)
	for k := range send {
		send[k] -= int32(first)
	}
	lo := 0
	for q := range size {
		nb := neighbour{rank: q, send: send[:asked[q]:asked[q]], buf: make([]float64, asked[q]), lo: lo, hi: lo + needed[q]}
		lo, send = nb.hi, send[asked[q]:]
		if len(nb.send) > 0 || nb.lo < nb.hi {
			m.neighbours = append(m.neighbours, nb)
		}
	}
	m.pending = make([]future.Waiter, 0, 2*len(m.neighbours))
	return m
}

func sum(counts []int) (total int) {
	for _, n := range counts {
		total += n
	}
	return total
}

// Apply computes y = A·x. The rank multiplies by its own part of x while the messages are
// under way. Apply throws the error with which the messages end.
func (m *Matrix) Apply(ctx context.Context, y, x []float64) {
	m.mulInterior(ctx, y, x)
	m.local.addBoundary(y, m.ghosts)
}

// Ordered returns the matrix as an Operator that adds up each row in the order of its columns,
// whoever owns them. The product has the same bits on any number of ranks, those of
// [sparse.CSR.MulVec]. Apply, which is faster, adds up owned columns first.
func (m *Matrix) Ordered() krylov.Operator {
	return krylov.OperatorFunc(func(ctx context.Context, y, x []float64) {
		m.mulInterior(ctx, y, x)
		m.local.mulOrdered(y, x, m.ghosts)
	})
}

// mulInterior computes the product with the owned columns while it gets the ghosts.
func (m *Matrix) mulInterior(ctx context.Context, y, x []float64) {
	pending := m.pending[:0]
	for i := range m.neighbours {
		if nb := &m.neighbours[i]; nb.lo < nb.hi {
			pending = append(pending, mpicx.Recv(m.comm, m.ghosts[nb.lo:nb.hi], nb.rank, haloTag))
		}
	}
	for i := range m.neighbours {
		nb := &m.neighbours[i]
		if len(nb.send) == 0 {
			continue
		}
		for k, i := range nb.send {
			nb.buf[k] = x[i]
		}
		pending = append(pending, mpicx.Send(m.comm, nb.buf, nb.rank, haloTag))
	}
	m.local.interior.MulVec(y, x)
	mpicx.Throw(future.WaitAll(ctx, pending...))
}

// First is the row of the whole matrix that is this rank's row 0.
func (m *Matrix) First() int { return m.local.first }

// Rows is the number of this rank's rows.
func (m *Matrix) Rows() int { return m.local.interior.Rows }

// Size is the number of rows, and of columns, of the whole matrix.
func (m *Matrix) Size() int { return m.Offsets[len(m.Offsets)-1] }

// Counts is the number of rows of each rank.
func (m *Matrix) Counts() []int {
	counts := make([]int, len(m.Offsets)-1)
	for r := range counts {
		counts[r] = m.Offsets[r+1] - m.Offsets[r]
	}
	return counts
}

// NNZ is the number of entries in this rank's rows.
func (m *Matrix) NNZ() int { return m.local.interior.NNZ() + m.local.boundary.NNZ() }

// DiagonalBlock returns the block of the matrix in the rank's rows and columns,
// which block Jacobi preconditioners need. It is not a copy: leave it as it is.
func (m *Matrix) DiagonalBlock() *sparse.CSR { return m.local.interior }

// Block returns a copy of this rank's rows.
func (m *Matrix) Block() Block {
	rows, err := sparse.NewCSR(m.Rows(), m.Size(), m.local.entries())
	if err != nil {
		panic(err) // the entries are inside of the matrix
	}
	return Block{m.First(), rows}
}

// Norm is the largest sum of magnitudes in a row, ‖A‖∞. It is collective.
func (m *Matrix) Norm(ctx context.Context) (float64, error) {
	sums, most := make([]float64, m.Rows()), make([]float64, 1)
	for _, t := range m.local.entries() {
		sums[t.Row] += math.Abs(t.Val)
	}
	mine := slices.Max(append(sums, 0)) // there may be no rows
	err := mpicx.Allreduce(m.comm, []float64{mine}, most, mpicx.Max).Wait(ctx)
	return most[0], err
}

// Symmetric says whether the matrix equals its transpose. It is collective.
func (m *Matrix) Symmetric(ctx context.Context) (symmetric bool, err error) {
	defer hook.Catch(&err)
	rows := m.Block()
	entries := assemble(ctx, m.comm, m.Offsets, func(yield func(sparse.Triplet) bool) {
		for t := range entriesOf(rows) {
			if !yield(sparse.Triplet{Row: t.Col, Col: t.Row, Val: t.Val}) {
				return
			}
		}
	})
	transposed := rowsOf(entries, m.Offsets, m.comm.Rank())
	same, all := []bool{true}, make([]bool, 1)
	for t := range entriesOf(Block{0, rows.CSR}) { // the other triangle is checked at the ranks that have it
		same[0] = same[0] && transposed.At(int(t.Row), int(t.Col)) == t.Val
	}
	mpicx.Allreduce(m.comm, same, all, mpicx.LAnd).MustWait(ctx)
	return all[0], nil
}
