package sparse

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"strings"
)

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
	side, sideLine          int   // of the first entry beside the diagonal: -1 above, 1 below; and its line
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
	switch {
	case s.format != "array":
	case s.symmetry == "general":
		s.announced = rows * cols
	case s.symmetry == "symmetric":
		s.announced = rows * (rows + 1) / 2
	default:
		s.announced = rows * (rows - 1) / 2
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
	switch side := cmp.Compare(i, j); {
	case side == 0 && s.symmetry == "skew-symmetric" && t.Val != 0:
		return t, s.errorHere("0 on the diagonal: the matrix is skew-symmetric")
	case s.side == 0:
		s.side, s.sideLine = side, s.line
	case side == -s.side:
		return t, s.errorHere(fmt.Sprintf("the triangle that line %d is in: the matrix is %s", s.sideLine, s.symmetry))
	}
	return t, nil
}

// arrayEntry returns the entry of a line in array format. Entries are listed column by column,
// without their indices.
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
