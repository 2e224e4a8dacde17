package sparse

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Write writes m in Matrix Market coordinate format. Each line of comment, if any, becomes a
// comment line. Of a symmetric or skew-symmetric matrix Write writes the lower triangle. [Read]
// returns the same matrix, except for the sign of zeros. It is an error if a value is not
// finite, because Read rejects such values.
func Write(w io.Writer, m *CSR, comment string) error {
	symmetry, entries := m.symmetry()
	out := bufio.NewWriter(w) // keeps the first error until Flush
	fmt.Fprintf(out, "%%%%MatrixMarket matrix coordinate real %s\n", symmetry)
	for line := range strings.Lines(comment) {
		fmt.Fprintf(out, "%% %s\n", strings.TrimRight(line, "\r\n"))
	}
	fmt.Fprintln(out, m.Rows, m.Cols, entries)
	var text []byte
	for i := range m.Rows {
		cols, vals := m.Row(i)
		for k, j := range cols {
			if symmetry != "general" && int(j) > i {
				break
			}
			if math.IsNaN(vals[k]) || math.IsInf(vals[k], 0) {
				return fmt.Errorf("sparse: Write of %v in row %d, column %d, expected a finite number", vals[k], i, j)
			}
			text = strconv.AppendInt(text[:0], int64(i)+1, 10)
			text = append(text, ' ')
			text = strconv.AppendInt(text, int64(j)+1, 10)
			text = append(text, ' ')
			text = strconv.AppendFloat(text, vals[k], 'g', -1, 64)
			_, _ = out.Write(append(text, '\n')) // Flush returns its error
		}
	}
	return out.Flush()
}

// WriteVector writes x in Matrix Market array format, which [ReadVector] reads. It is
// an error if an element is not finite.
func WriteVector(w io.Writer, x []float64) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "%%%%MatrixMarket matrix array real general\n%d 1\n", len(x))
	var text []byte
	for i, v := range x {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("sparse: WriteVector of %v in row %d, expected a finite number", v, i)
		}
		text = strconv.AppendFloat(text[:0], v, 'g', -1, 64)
		_, _ = out.Write(append(text, '\n'))
	}
	return out.Flush()
}

// symmetry returns the matrix's symmetry as Matrix Market names it, and the number of entries
// that a file with this symmetry has. A matrix of zeros is symmetric.
func (m *CSR) symmetry() (word string, entries int) {
	if m.Rows != m.Cols {
		return "general", m.NNZ()
	}
	symmetric, skew := true, true
	for i := range m.Rows {
		cols, vals := m.Row(i)
		for k, j := range cols {
			if int(j) <= i {
				entries++
			}
			row, mirrored := m.Row(int(j))
			at, ok := slices.BinarySearch(row, int32(i))
			symmetric = symmetric && ok && mirrored[at] == vals[k]
			skew = skew && ok && mirrored[at] == -vals[k]
			if !symmetric && !skew {
				return "general", m.NNZ()
			}
		}
	}
	if symmetric {
		return "symmetric", entries
	}
	return "skew-symmetric", entries
}
