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
		return nil, s.r.errorAt(s.r.sizeLine, fmt.Sprintf("%d columns", s.Cols), "1: a vector")
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

	r *reader
}

// NewScanner reads the header. The name is used only in errors.
func NewScanner(r io.Reader, name string) (*Scanner, error) {
	rd := &reader{lines: lines{file: name, in: bufio.NewReaderSize(r, maxLine)}}
	if err := rd.readBanner(); err != nil {
		return nil, err
	}
	if err := rd.readSize(); err != nil {
		return nil, err
	}
	return &Scanner{int(rd.rows), int(rd.cols), rd.symmetry == "symmetric", rd}, nil
}

// Entries returns the entries, in the order of the text. It can be used once. For a symmetric
// matrix it returns both triangles. An error ends the sequence.
func (s *Scanner) Entries() iter.Seq2[Triplet, error] {
	return func(yield func(Triplet, error) bool) {
		if err := s.r.read(func(t Triplet) bool { return yield(t, nil) }); err != nil {
			yield(Triplet{}, err)
		}
	}
}

// A reader reads one file.
type reader struct {
	lines
	header
	sizeLine int
	entries  [2]Triplet // of the last line: the entry, and its mirror image
	n        int        // number of these
	count    int64      // entries read
	row, col int64      // indices of the next entry of an array
	upper    int        // line of the first entry above the diagonal; 0: none
	lower    int        // the same below
}

// A header has the contents of the first line and of the size line.
type header struct {
	format, field, symmetry string
	rows, cols              int64
	announced               int64 // entries in the file
}

// read reads the entries, until emit returns false.
func (r *reader) read(emit func(Triplet) bool) error {
	readEntry := r.readCoordinate
	if r.format == "array" {
		readEntry = r.readArray
		r.row = r.firstRow(0)
	}
	for {
		err := r.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if r.count == r.announced {
			return r.errorAt(r.line, quote(r.text), fmt.Sprintf("the end of the file after the %d entries that line %d announces", r.count, r.sizeLine))
		}
		r.count++
		r.n = 0
		if err := readEntry(); err != nil {
			return err
		}
		for _, t := range r.entries[:r.n] {
			if !emit(t) {
				return nil
			}
		}
	}
	if r.count < r.announced {
		return r.errorAt(r.line, fmt.Sprintf("the end of the file after %d entries", r.count),
			fmt.Sprintf("the %d that line %d announces", r.announced, r.sizeLine))
	}
	for _, dim := range []int64{r.rows, r.cols} {
		if dim > freeDim && dim > dimPerEntry*r.count {
			return r.errorAt(r.sizeLine, fmt.Sprintf("%d rows and %d columns, but %d entries", r.rows, r.cols, r.count),
				fmt.Sprintf("up to %d of them, or up to %d for each entry", freeDim, dimPerEntry))
		}
	}
	return nil
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
func (r *reader) readBanner() error {
	const banner = "a first line of the form: %%MatrixMarket matrix coordinate real general"
	err := r.readLine()
	if errors.Is(err, io.EOF) {
		return r.errorAt(0, "an empty file", banner)
	}
	if what := archive(r.text); what != "" {
		return r.errorAt(0, what, "text, or a file of text that gzip has compressed")
	}
	if err != nil {
		return err
	}
	words := strings.Fields(strings.ToLower(string(r.text)))
	if len(words) != 5 || words[0] != "%%matrixmarket" || words[1] != "matrix" {
		return r.errorAt(r.line, quote(r.text), banner)
	}
	r.format, r.field, r.symmetry = words[2], words[3], words[4]
	switch {
	case r.format != "coordinate" && r.format != "array":
		return r.errorAt(r.line, fmt.Sprintf("format %q", r.format), "coordinate or array")
	case r.field != "real" && r.field != "integer" && r.field != "pattern":
		return r.errorAt(r.line, fmt.Sprintf("values of kind %q", r.field), "real, integer or pattern; complex ones are not supported")
	case r.symmetry != "general" && r.symmetry != "symmetric" && r.symmetry != "skew-symmetric":
		return r.errorAt(r.line, fmt.Sprintf("symmetry %q", r.symmetry), "general, symmetric or skew-symmetric; hermitian is not supported")
	case r.field == "pattern" && r.format == "array":
		return r.errorAt(r.line, "a pattern in array format", "coordinate: an array has values")
	case r.field == "pattern" && r.symmetry == "skew-symmetric":
		return r.errorAt(r.line, "a skew-symmetric pattern", "real or integer: skew-symmetric values have signs")
	}
	return nil
}

// readSize reads the size line.
func (r *reader) readSize() error {
	want, n := "rows, columns and the number of entries", 3
	if r.format == "array" {
		want, n = "rows and columns", 2
	}
	switch err := r.next(); {
	case errors.Is(err, io.EOF):
		return r.errorAt(r.line, "the end of the file", want)
	case err != nil:
		return err
	}
	r.sizeLine = r.line
	var size [3]int64
	rest := r.text
	for k := range n {
		var ok bool
		if size[k], rest, ok = cutInt(rest); !ok {
			return r.errorAt(r.line, quote(r.text), want)
		}
	}
	if len(rest) > 0 {
		return r.errorAt(r.line, quote(r.text), want)
	}
	r.rows, r.cols, r.announced = size[0], size[1], size[2]
	if max(r.rows, r.cols) > math.MaxInt32 {
		return r.errorAt(r.line, fmt.Sprintf("%d rows and %d columns", r.rows, r.cols), fmt.Sprintf("up to %d of them", math.MaxInt32))
	}
	if r.symmetry != "general" && r.rows != r.cols {
		return r.errorAt(r.line, fmt.Sprintf("%d rows and %d columns", r.rows, r.cols), "equally many: the matrix is "+r.symmetry)
	}
	if r.format == "array" {
		switch r.symmetry {
		case "general":
			r.announced = r.rows * r.cols
		case "symmetric":
			r.announced = r.rows * (r.rows + 1) / 2
		case "skew-symmetric":
			r.announced = r.rows * (r.rows - 1) / 2
		}
	}
	return nil
}

// readCoordinate reads an entry in coordinate format from r.text.
func (r *reader) readCoordinate() error {
	i, rest, ok := cutInt(r.text)
	if !ok || i < 1 || i > r.rows {
		return r.errorAt(r.line, quote(r.text), fmt.Sprintf("a row from 1 to %d", r.rows))
	}
	j, rest, ok := cutInt(rest)
	if !ok || j < 1 || j > r.cols {
		return r.errorAt(r.line, quote(r.text), fmt.Sprintf("after the row a column from 1 to %d", r.cols))
	}
	if r.field != "pattern" {
		return r.readValue(i-1, j-1, rest)
	}
	if len(rest) > 0 {
		return r.errorAt(r.line, quote(r.text), "a row and a column only: the matrix is a pattern")
	}
	return r.add(i-1, j-1, 1)
}

// readArray reads an entry in array format from r.text. Entries are listed column by column,
// without their indices.
func (r *reader) readArray() error {
	err := r.readValue(r.row, r.col, r.text)
	if r.row++; r.row == r.rows {
		r.col++
		r.row = r.firstRow(r.col)
	}
	return err
}

// firstRow returns the row of the first entry of column j in an array.
func (r *reader) firstRow(j int64) int64 {
	switch r.symmetry {
	case "symmetric":
		return j
	case "skew-symmetric":
		return j + 1
	}
	return 0
}

// readValue reads the value of the entry at row i and column j, from text.
func (r *reader) readValue(i, j int64, text []byte) error {
	v, ok := parseReal(text, r.field == "integer")
	if !ok {
		what := "a finite real number"
		if r.field == "integer" {
			what = "an integer"
		}
		if r.format == "coordinate" {
			what = "after the row and the column " + what
		}
		return r.errorAt(r.line, quote(r.text), what)
	}
	if v == 0 && r.format == "array" {
		return nil
	}
	return r.add(i, j, v)
}

// add adds an entry and, if the matrix is symmetric or skew-symmetric, its mirror image.
func (r *reader) add(i, j int64, v float64) error {
	t := Triplet{int32(i), int32(j), v}
	r.entries[0], r.n = t, 1
	if r.symmetry == "general" {
		return nil
	}
	switch {
	case i == j && r.symmetry == "skew-symmetric" && v != 0:
		return r.errorAt(r.line, quote(r.text), "0 on the diagonal: the matrix is skew-symmetric")
	case i == j:
		return nil
	case i < j && r.upper == 0:
		r.upper = r.line
	case i > j && r.lower == 0:
		r.lower = r.line
	}
	if r.upper > 0 && r.lower > 0 {
		return r.errorAt(r.line, quote(r.text), fmt.Sprintf("the triangle that line %d is in: the matrix is %s", min(r.upper, r.lower), r.symmetry))
	}
	t.Row, t.Col = t.Col, t.Row
	if r.symmetry == "skew-symmetric" {
		t.Val = -t.Val
	}
	r.entries[1], r.n = t, 2
	return nil
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
	if err := m.CheckSums(0, s.r.file); err != nil {
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
