package sparse

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"strings"
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
		return nil, s.errorAt(s.sizeLine, fmt.Sprintf("%d columns", s.Cols), "1: a vector")
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

// Read reads a matrix in Matrix Market exchange format (Boisvert, Pozo and Remington, The
// Matrix Market Exchange Formats, NISTIR 5935, 1996) from r. The name is used only in errors.
// Read accepts
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

// A Scanner reads a matrix as [Read] does, but returns one entry after another. It is for
// callers that do not keep all of them.
type Scanner struct {
	Rows, Cols int
	Symmetric  bool // as the file says

	lines
	format, field, symmetry string // as in the first line
	sizeLine                int
	announced               int64 // entries in the file
	count                   int64 // entries read
	row, col                int   // indices of the next entry of an array
	upper                   int   // line of the first entry above the diagonal; 0: none
	lower                   int   // the same below
}

// NewScanner reads the header. The name is used only in errors.
func NewScanner(r io.Reader, name string) (*Scanner, error) {
	s := &Scanner{lines: lines{file: name, in: bufio.NewReaderSize(r, maxLine)}}
	if err := s.readBanner(); err != nil {
		return nil, err
	}
	if err := s.readSize(); err != nil {
		return nil, err
	}
	s.Symmetric, s.row = s.symmetry == "symmetric", s.firstRow(0)
	return s, nil
}

// Entries returns the entries, in the order of the text. It can be used once. For a symmetric
// matrix it returns both triangles. An error ends the sequence.
func (s *Scanner) Entries() iter.Seq2[Triplet, error] {
	return func(yield func(Triplet, error) bool) {
		for {
			t, err := s.entry()
			if err == io.EOF {
				return
			}
			if err != nil {
				yield(Triplet{}, err)
				return
			}
			if t.Val == 0 && s.format == "array" {
				continue
			}
			if !yield(t, nil) {
				return
			}
			if s.symmetry == "general" || t.Row == t.Col {
				continue
			}
			t.Row, t.Col = t.Col, t.Row
			if s.symmetry == "skew-symmetric" {
				t.Val = -t.Val
			}
			if !yield(t, nil) {
				return
			}
		}
	}
}

// entry reads the next entry. It returns io.EOF at the end.
func (s *Scanner) entry() (Triplet, error) {
	switch err := s.next(); {
	case err == io.EOF:
		return Triplet{}, s.end()
	case err != nil:
		return Triplet{}, err
	case s.count == s.announced:
		return Triplet{}, s.errorHere(fmt.Sprintf("the end of the file after the %d entries that line %d announces", s.count, s.sizeLine))
	}
	s.count++
	if s.format == "array" {
		return s.arrayEntry()
	}
	return s.coordinateEntry()
}

// end returns io.EOF, or what is wrong with the number of entries.
func (s *Scanner) end() error {
	if s.count < s.announced {
		return s.errorAt(s.line, fmt.Sprintf("the end of the file after %d entries", s.count),
			fmt.Sprintf("the %d that line %d announces", s.announced, s.sizeLine))
	}
	if dim := int64(max(s.Rows, s.Cols)); dim > freeDim && dim > dimPerEntry*s.count {
		return s.errorAt(s.sizeLine, fmt.Sprintf("%d rows and %d columns, but %d entries", s.Rows, s.Cols, s.count),
			fmt.Sprintf("up to %d of them, or up to %d for each entry", freeDim, dimPerEntry))
	}
	return io.EOF
}

// archive says what a file is that begins like this and that has to be unpacked before it is text;
// "" if it is none.
func archive(text []byte) string {
	const tar, at = "ustar", 257
	if len(text) >= at && bytes.HasPrefix(text[at:], []byte(tar)) {
		return "a tar archive"
	}
	for _, a := range []struct{ magic, what string }{
		{"BZh", "a file that bzip2 has compressed"},
		{"\xfd7zXZ\x00", "a file that xz has compressed"},
		{"\x28\xb5\x2f\xfd", "a file that zstd has compressed"},
		{"\x1f\x8b", "data that gzip has compressed"},
		{"\x1f\x9d", "a file that compress has compressed"},
		{"\x04\x22\x4d\x18", "a file that lz4 has compressed"},
		{"PK\x03\x04", "a zip archive"},
		{"7z\xbc\xaf\x27\x1c", "a 7z archive"},
	} {
		if bytes.HasPrefix(text, []byte(a.magic)) {
			return a.what
		}
	}
	return ""
}

// readBanner reads the first line.
func (s *Scanner) readBanner() error {
	const banner = "a first line of the form: %%MatrixMarket matrix coordinate real general"
	err := s.readLine()
	if errors.Is(err, io.EOF) {
		return s.errorAt(0, "an empty file", banner)
	}
	if what := archive(s.text); what != "" {
		return s.errorAt(0, what, "text, or a file of text that gzip has compressed")
	}
	if err != nil {
		return err
	}
	words := strings.Fields(strings.ToLower(string(s.text)))
	if len(words) != 5 || words[0] != "%%matrixmarket" || words[1] != "matrix" {
		return s.errorHere(banner)
	}
	s.format, s.field, s.symmetry = words[2], words[3], words[4]
	switch {
	case s.format != "coordinate" && s.format != "array":
		return s.errorAt(s.line, fmt.Sprintf("format %q", s.format), "coordinate or array")
	case s.field != "real" && s.field != "integer" && s.field != "pattern":
		return s.errorAt(s.line, fmt.Sprintf("values of kind %q", s.field), "real, integer or pattern; complex ones are not supported")
	case s.symmetry != "general" && s.symmetry != "symmetric" && s.symmetry != "skew-symmetric":
		return s.errorAt(s.line, fmt.Sprintf("symmetry %q", s.symmetry), "general, symmetric or skew-symmetric; hermitian is not supported")
	case s.field == "pattern" && s.format == "array":
		return s.errorAt(s.line, "a pattern in array format", "coordinate: an array has values")
	case s.field == "pattern" && s.symmetry == "skew-symmetric":
		return s.errorAt(s.line, "a skew-symmetric pattern", "real or integer: skew-symmetric values have signs")
	}
	return nil
}

// readSize reads the size line.
func (s *Scanner) readSize() error {
	want, n := "rows, columns and the number of entries", 3
	if s.format == "array" {
		want, n = "rows and columns", 2
	}
	switch err := s.next(); {
	case errors.Is(err, io.EOF):
		return s.errorAt(s.line, "the end of the file", want)
	case err != nil:
		return err
	}
	s.sizeLine = s.line
	var size [3]int64
	rest := s.text
	for k := range n {
		var ok bool
		if size[k], rest, ok = cutInt(rest); !ok {
			return s.errorHere(want)
		}
	}
	if len(rest) > 0 {
		return s.errorHere(want)
	}
	rows, cols := size[0], size[1]
	if max(rows, cols) > math.MaxInt32 {
		return s.errorAt(s.line, fmt.Sprintf("%d rows and %d columns", rows, cols), fmt.Sprintf("up to %d of them", math.MaxInt32))
	}
	if s.symmetry != "general" && rows != cols {
		return s.errorAt(s.line, fmt.Sprintf("%d rows and %d columns", rows, cols), "equally many: the matrix is "+s.symmetry)
	}
	s.Rows, s.Cols, s.announced = int(rows), int(cols), size[2]
	if s.format == "array" {
		switch s.symmetry {
		case "general":
			s.announced = rows * cols
		case "symmetric":
			s.announced = rows * (rows + 1) / 2
		case "skew-symmetric":
			s.announced = rows * (rows - 1) / 2
		}
	}
	return nil
}

// coordinateEntry returns the entry of a line in coordinate format.
func (s *Scanner) coordinateEntry() (t Triplet, err error) {
	i, rest, ok := cutInt(s.text)
	if !ok || i < 1 || i > int64(s.Rows) {
		return t, s.errorHere(fmt.Sprintf("a row from 1 to %d", s.Rows))
	}
	j, rest, ok := cutInt(rest)
	if !ok || j < 1 || j > int64(s.Cols) {
		return t, s.errorHere(fmt.Sprintf("after the row a column from 1 to %d", s.Cols))
	}
	t = Triplet{int32(i - 1), int32(j - 1), 1}
	if s.field != "pattern" {
		if t.Val, err = s.value(rest); err != nil {
			return t, err
		}
	} else if len(rest) > 0 {
		return t, s.errorHere("a row and a column only: the matrix is a pattern")
	}
	if s.symmetry == "general" {
		return t, nil
	}
	switch {
	case i == j && s.symmetry == "skew-symmetric" && t.Val != 0:
		return t, s.errorHere("0 on the diagonal: the matrix is skew-symmetric")
	case i < j && s.upper == 0:
		s.upper = s.line
	case i > j && s.lower == 0:
		s.lower = s.line
	}
	if s.upper > 0 && s.lower > 0 {
		return t, s.errorHere(fmt.Sprintf("the triangle that line %d is in: the matrix is %s", min(s.upper, s.lower), s.symmetry))
	}
	return t, nil
}

// arrayEntry returns the entry of a line in array format. Entries are listed column by column, without
// their indices.
func (s *Scanner) arrayEntry() (t Triplet, err error) {
	t = Triplet{Row: int32(s.row), Col: int32(s.col)}
	if s.row++; s.row == s.Rows {
		s.col++
		s.row = s.firstRow(s.col)
	}
	t.Val, err = s.value(s.text)
	return t, err
}

// firstRow returns the row of the first entry of column j in an array.
func (s *Scanner) firstRow(j int) int {
	switch s.symmetry {
	case "symmetric":
		return j
	case "skew-symmetric":
		return j + 1
	}
	return 0
}

// value returns the value at the end of a line.
func (s *Scanner) value(text []byte) (float64, error) {
	v, ok := parseReal(text, s.field == "integer")
	if ok {
		return v, nil
	}
	what := "a finite real number"
	if s.field == "integer" {
		what = "an integer"
	}
	if s.format == "coordinate" {
		what = "after the row and the column " + what
	}
	return 0, s.errorHere(what)
}

// matrix reads the entries and returns the matrix.
func (s *Scanner) matrix() (*CSR, error) {
	var entries []Triplet
	for t, err := range s.Entries() {
		if err != nil {
			return nil, err
		}
		entries = append(entries, t)
	}
	m, err := NewCSR(s.Rows, s.Cols, entries)
	if err != nil {
		return nil, err
	}
	if err := m.CheckSums(0, s.file); err != nil {
		return nil, err
	}
	return m, nil
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
