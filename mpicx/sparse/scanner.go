package sparse

import (
	"bufio"
	"bytes"
	"cmp"
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
	s.readBanner()
	s.readSize()
	s.Symmetric, s.row = s.symmetry == "symmetric", s.firstRow(0)
	if s.err != nil {
		return nil, s.err
	}
	return s, nil
}

// Entries returns the entries, in the order of the text. It can be used once. For a symmetric
// matrix it returns both triangles. An error ends the sequence.
func (s *Scanner) Entries() iter.Seq2[Triplet, error] {
	return func(yield func(Triplet, error) bool) {
		for s.next() {
			t := s.entry()
			if s.err != nil {
				break
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
		if s.checkCount(); s.err != nil {
			yield(Triplet{}, s.err)
		}
	}
}

// entry returns the entry of the line. If it notes an error, the entry does not count.
func (s *Scanner) entry() Triplet {
	if s.count == s.announced {
		s.wrong(fmt.Sprintf("the end of the file after the %d entries that line %d announces", s.count, s.sizeLine))
	}
	s.count++
	if s.format == "array" {
		return s.arrayEntry()
	}
	return s.coordinateEntry()
}

// checkCount notes at the end what is wrong with the number of entries.
func (s *Scanner) checkCount() {
	if s.count < s.announced {
		s.wrongAt(s.line, fmt.Sprintf("the end of the file after %d entries", s.count),
			fmt.Sprintf("the %d that line %d announces", s.announced, s.sizeLine))
	}
	if dim := int64(max(s.Rows, s.Cols)); dim > freeDim && dim > dimPerEntry*s.count {
		s.wrongAt(s.sizeLine, fmt.Sprintf("%d rows and %d columns, but %d entries", s.Rows, s.Cols, s.count),
			fmt.Sprintf("up to %d of them, or up to %d for each entry", freeDim, dimPerEntry))
	}
}

// archive says what a file is that begins like this and that has to be unpacked before it is text;
// "" if it is none.
func archive(text []byte) string {
	for _, a := range []struct {
		at          int
		magic, what string
	}{
		{257, "ustar", "a tar archive"},
		{0, "BZh", "a file that bzip2 has compressed"},
		{0, "\xfd7zXZ\x00", "a file that xz has compressed"},
		{0, "\x28\xb5\x2f\xfd", "a file that zstd has compressed"},
		{0, "\x1f\x8b", "data that gzip has compressed"},
		{0, "\x1f\x9d", "a file that compress has compressed"},
		{0, "\x04\x22\x4d\x18", "a file that lz4 has compressed"},
		{0, "PK\x03\x04", "a zip archive"},
		{0, "7z\xbc\xaf\x27\x1c", "a 7z archive"},
	} {
		if len(text) > a.at && bytes.HasPrefix(text[a.at:], []byte(a.magic)) {
			return a.what
		}
	}
	return ""
}

// readBanner reads the first line.
func (s *Scanner) readBanner() {
	const banner = "a first line of the form: %%MatrixMarket matrix coordinate real general"
	found := s.readLine()
	if what := archive(s.text); what != "" {
		s.err = nil // says more than that the line is too long
		s.wrongAt(0, what, "text, or a file of text that gzip has compressed")
	}
	if !found {
		s.wrongAt(0, "an empty file", banner)
		return
	}
	words := strings.Fields(strings.ToLower(string(s.text)))
	if len(words) != 5 || words[0] != "%%matrixmarket" || words[1] != "matrix" {
		s.wrong(banner)
		return
	}
	s.format, s.field, s.symmetry = words[2], words[3], words[4]
	switch {
	case s.format != "coordinate" && s.format != "array":
		s.wrongAt(s.line, fmt.Sprintf("format %q", s.format), "coordinate or array")
	case s.field != "real" && s.field != "integer" && s.field != "pattern":
		s.wrongAt(s.line, fmt.Sprintf("values of kind %q", s.field), "real, integer or pattern; complex ones are not supported")
	case s.symmetry != "general" && s.symmetry != "symmetric" && s.symmetry != "skew-symmetric":
		s.wrongAt(s.line, fmt.Sprintf("symmetry %q", s.symmetry), "general, symmetric or skew-symmetric; hermitian is not supported")
	case s.field == "pattern" && s.format == "array":
		s.wrongAt(s.line, "a pattern in array format", "coordinate: an array has values")
	case s.field == "pattern" && s.symmetry == "skew-symmetric":
		s.wrongAt(s.line, "a skew-symmetric pattern", "real or integer: skew-symmetric values have signs")
	}
}

// readSize reads the size line.
func (s *Scanner) readSize() {
	want, n := "rows, columns and the number of entries", 3
	if s.format == "array" {
		want, n = "rows and columns", 2
	}
	if !s.next() {
		s.wrongAt(s.line, "the end of the file", want)
		return
	}
	s.sizeLine = s.line
	var size [3]int64
	rest := s.text
	for k := range n {
		var ok bool
		if size[k], rest, ok = cutInt(rest); !ok {
			s.wrong(want)
		}
	}
	if len(rest) > 0 {
		s.wrong(want)
	}
	rows, cols := size[0], size[1]
	if max(rows, cols) > math.MaxInt32 {
		s.wrongAt(s.line, fmt.Sprintf("%d rows and %d columns", rows, cols), fmt.Sprintf("up to %d of them", math.MaxInt32))
	}
	if s.symmetry != "general" && rows != cols {
		s.wrongAt(s.line, fmt.Sprintf("%d rows and %d columns", rows, cols), "equally many: the matrix is "+s.symmetry)
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
}

// coordinateEntry returns the entry of a line in coordinate format.
func (s *Scanner) coordinateEntry() Triplet {
	i, rest, ok := cutInt(s.text)
	if !ok || i < 1 || i > int64(s.Rows) {
		s.wrong(fmt.Sprintf("a row from 1 to %d", s.Rows))
	}
	j, rest, ok := cutInt(rest)
	if !ok || j < 1 || j > int64(s.Cols) {
		s.wrong(fmt.Sprintf("after the row a column from 1 to %d", s.Cols))
	}
	t := Triplet{int32(i - 1), int32(j - 1), 1}
	if s.field != "pattern" {
		t.Val = s.value(rest)
	} else if len(rest) > 0 {
		s.wrong("a row and a column only: the matrix is a pattern")
	}
	if s.symmetry == "general" {
		return t
	}
	switch side := cmp.Compare(i, j); {
	case side == 0 && s.symmetry == "skew-symmetric" && t.Val != 0:
		s.wrong("0 on the diagonal: the matrix is skew-symmetric")
	case s.side == 0:
		s.side, s.sideLine = side, s.line
	case side == -s.side:
		s.wrong(fmt.Sprintf("the triangle that line %d is in: the matrix is %s", s.sideLine, s.symmetry))
	}
	return t
}

// arrayEntry returns the entry of a line in array format. Entries are listed column by column,
// without their indices.
func (s *Scanner) arrayEntry() Triplet {
	t := Triplet{int32(s.row), int32(s.col), s.value(s.text)}
	if s.row++; s.row == s.Rows {
		s.col++
		s.row = s.firstRow(s.col)
	}
	return t
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
func (s *Scanner) value(text []byte) float64 {
	v, ok := parseReal(text, s.field == "integer")
	if !ok {
		what := "a finite real number"
		if s.field == "integer" {
			what = "an integer"
		}
		if s.format == "coordinate" {
			what = "after the row and the column " + what
		}
		s.wrong(what)
	}
	return v
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
