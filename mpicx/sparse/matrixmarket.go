package sparse

import (
	"fmt"
	"io"
	"math"
)

// A FormatError says where and why the reader rejects a file.
type FormatError struct {
	File     string
	Line     int    // counted from 1; 0 if the error is not in a single line
	Found    string // what was found there, quoted if it is text of the file
	Expected string
}

func (e *FormatError) Error() string {
	place := e.File
	if e.Line > 0 {
		place = fmt.Sprintf("%s:%d", e.File, e.Line)
	}
	return fmt.Sprintf("%s: found %s, expected %s", place, e.Found, e.Expected)
}

// The number of rows and columns is limited, so that a header cannot make the reader, or a
// caller with a vector of that length, allocate much more than the file's length suggests. Up
// to freeDim is always allowed: that is 32 MB of row pointers.
const (
	freeDim     = 1 << 22
	dimPerEntry = 16
)

// ReadFile reads a matrix from the named file, which may be compressed: see [Open] and [Read].
func ReadFile(name string) (*CSR, error) {
	f, err := Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Read(f, name)
}

// ReadVector reads a vector, such as a right-hand side, from a file as for [ReadFile] whose
// matrix has one column.
func ReadVector(name string) ([]float64, error) {
	f, err := Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s, err := NewScanner(f, name)
	if err != nil {
		return nil, err
	}
	if s.Cols != 1 {
		s.wrongAt(s.sizeLine, fmt.Sprintf("%d columns", s.Cols), "1: a vector")
	}
	m, err := s.matrix()
	if err != nil {
		return nil, err
	}
	v := make([]float64, m.Rows)
	for i := range v {
		v[i] = m.At(i, 0)
	}
	return v, nil
}

// Read reads a matrix in Matrix Market exchange format (Boisvert, Pozo and Remington, The Matrix
// Market Exchange Formats, NISTIR 5935, 1996) from r. The name is used only in errors. Read accepts
//
//   - coordinate and array format. Of an array it keeps the elements that are not zero.
//   - real, integer and pattern values. Entries of a pattern are 1. Integers beyond 2⁵³ are rounded.
//     The exponent's letter may be Fortran's D.
//   - general, symmetric and skew-symmetric matrices. The file should have the lower triangle. In
//     coordinate format it may have the upper triangle instead, but not entries in both: such a
//     matrix is more likely general.
//
// Entries with the same indices are added up, as programs that assemble finite elements expect.
// Blank lines, and lines that begin with %, may be anywhere after the first line. Only these
// may be longer than 256 KiB.
//
// Errors in the text are [*FormatError]s: among them complex matrices, infinite values and NaN,
// entries on the diagonal of a skew-symmetric matrix unless they are 0, and more or fewer
// entries than announced. There may be at most 2³¹-1 rows and columns and, if there are more
// than 2²², at most 16 for each entry in the file: the memory used is in proportion to what was
// read, whatever the header says. An error of r is wrapped.
func Read(r io.Reader, name string) (*CSR, error) {
	s, err := NewScanner(r, name)
	if err != nil {
		return nil, err
	}
	return s.matrix()
}

// CheckSums returns a [*FormatError] if entries of a file with the same indices do not have a
// finite sum. Row 0 of m is row first of the file.
func (m *CSR) CheckSums(first int, file string) error {
	for i := range m.Rows {
		cols, vals := m.Row(i)
		for k, v := range vals {
			if math.IsInf(v, 0) || math.IsNaN(v) {
				return &FormatError{File: file, Found: fmt.Sprintf("entries of row %d and column %d that add up to %v", first+i+1, cols[k]+1, v), Expected: "a finite sum"}
			}
		}
	}
	return nil
}
