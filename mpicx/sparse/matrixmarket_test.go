package sparse

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const testdata = "../../testdata/matrices"

func readTestdata(t testing.TB, name string) *CSR {
	m, err := ReadFile(filepath.Join(testdata, name))
	require.NoError(t, err)
	requireValid(t, m)
	return m
}

func TestReadTestdata(t *testing.T) {
	want := map[string]struct{ rows, cols, nnz int }{
		"poisson2d-128.mtx.gz":  {16384, 16384, 16384 + 4*128*127},
		"poisson3d-20.mtx.gz":   {8000, 8000, 8000 + 6*20*20*19},
		"anisotropic-64.mtx.gz": {4096, 4096, 4096 + 4*64*63},
		"convection-64.mtx.gz":  {4096, 4096, 4096 + 4*64*63},
		"graphene-64.mtx.gz":    {8192, 8192, 4 * 8192},
		"hilbert-6.mtx":         {6, 6, 36},
		"hilbert-6-b.mtx":       {6, 1, 6},
		"integer-4.mtx":         {4, 4, 8},
		"petersen.mtx":          {10, 10, 30},
		"skew-6.mtx":            {6, 6, 10},
	}
	files, err := filepath.Glob(filepath.Join(testdata, "*.mtx*"))
	require.NoError(t, err)
	require.Len(t, files, len(want))
	for name, size := range want {
		m := readTestdata(t, name)
		assert.Equal(t, size.rows, m.Rows, name)
		assert.Equal(t, size.cols, m.Cols, name)
		assert.Equal(t, size.nnz, m.NNZ(), name)
	}
}

func TestRead(t *testing.T) {
	tests := []struct {
		name, text string
		want       [][]float64
	}{
		{"array", "%%MatrixMarket matrix array real general\n2 3\n1\n2\n3\n4\n0\n6\n", [][]float64{{1, 3, 0}, {2, 4, 6}}},
		{"array symmetric", "%%MatrixMarket matrix array real symmetric\n3 3\n1\n2\n3\n4\n5\n6\n", [][]float64{{1, 2, 3}, {2, 4, 5}, {3, 5, 6}}},
		{"array skew", "%%MatrixMarket matrix array integer skew-symmetric\n3 3\n1\n2\n3\n", [][]float64{{0, -1, -2}, {1, 0, -3}, {2, 3, 0}}},
		{"array skew 1x1", "%%MatrixMarket matrix array real skew-symmetric\n1 1\n", [][]float64{{0}}},
		{"upper triangle", "%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 2 5\n2 2 1\n", [][]float64{{0, 5}, {5, 1}}},
		{"skew upper", "%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n1 2 5\n", [][]float64{{0, 5}, {-5, 0}}},
		{"skew zero diagonal", "%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 2\n1 1 0\n2 1 5\n", [][]float64{{0, -5}, {5, 0}}},
		{"duplicates", "%%MatrixMarket matrix coordinate pattern general\n1 2 3\n1 2\n1 1\n1 2\n", [][]float64{{1, 2}}},
		{"duplicates symmetric", "%%MatrixMarket matrix coordinate real symmetric\n2 2 3\n2 1 1\n2 1 2\n1 1 4\n", [][]float64{{4, 3}, {3, 0}}},
		{"blanks", "%%matrixmarket\tMATRIX  coordinate Real GENERAL \r\n\r\n  %x\n \t1  1\t1 \r\n\n\t1\t 1   -2.5e-1\t\r\n\r\n%", [][]float64{{-0.25}}},
		{"no newline at the end", "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 7", [][]float64{{7}}},
		{"exponents", "%%MatrixMarket matrix array real general\n1 6\n1.5D+02\n1.5d-2\n1E2\n+.5\n-5.\n1e-999\n", [][]float64{{150, 0.015, 100, 0.5, -5, 0}}},
		{"integer", "%%MatrixMarket matrix coordinate integer general\n1 2 2\n01 1 9007199254740993\n1 2 -3\n", [][]float64{{1 << 53, -3}}},
		{"no entries", "%%MatrixMarket matrix coordinate real general\n2 1 0\n", [][]float64{{0}, {0}}},
		{"no rows", "%%MatrixMarket matrix coordinate real symmetric\n0 0 0\n", [][]float64{}},
		{"long comment", "%%MatrixMarket matrix coordinate real general\n% " + strings.Repeat("x", 3*maxLine) + "\n1 1 1\n1 1 2\n%" + strings.Repeat("y", 2*maxLine), [][]float64{{2}}},
		{"long line", "%%MatrixMarket matrix coordinate real general\n1 1 1\n1" + strings.Repeat(" ", maxLine/2) + "1 0." + strings.Repeat("0", 300) + "1e301\n", [][]float64{{1}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(tt.text), iotest.OneByteReader(strings.NewReader(tt.text))} {
				m, err := Read(r, "a.mtx")
				require.NoError(t, err)
				requireValid(t, m)
				assert.Equal(t, tt.want, dense(m))
			}
		})
	}
}

// freeDim rows are allowed without entries; one more is not.
func TestReadManyEmptyRows(t *testing.T) {
	text := "%%MatrixMarket matrix coordinate real general\n4194304 2 1\n4194304 2 1\n"
	m, err := Read(strings.NewReader(text), "a.mtx")
	require.NoError(t, err)
	assert.Equal(t, 1.0, m.At(4194303, 1))
	_, err = Read(strings.NewReader(strings.ReplaceAll(text, "4194304", "4194305")), "a.mtx")
	assert.Error(t, err)
}

func TestReadErrors(t *testing.T) {
	const (
		real      = "%%MatrixMarket matrix coordinate real general\n"
		symmetric = "%%MatrixMarket matrix coordinate real symmetric\n"
		skew      = "%%MatrixMarket matrix coordinate real skew-symmetric\n"
		pattern   = "%%MatrixMarket matrix coordinate pattern general\n"
		integer   = "%%MatrixMarket matrix coordinate integer general\n"
		array     = "%%MatrixMarket matrix array real general\n"
		banner    = "expected a first line of the form: %%MatrixMarket matrix coordinate real general"
		value     = "expected after the row and the column a finite real number"
	)
	tests := []struct{ name, text, want string }{
		{"empty", "", "a.mtx: found an empty file, " + banner},
		{"no banner", "1 1 1\n", `a.mtx:1: found "1 1 1", ` + banner},
		{"short banner", "%%MatrixMarket matrix coordinate real\n", `a.mtx:1: found "%%MatrixMarket matrix coordinate real", ` + banner},
		{"vector", "%%MatrixMarket vector array real general\n", `a.mtx:1: found "%%MatrixMarket vector array real general", ` + banner},
		{"binary", "\x7fELF\x02\x00\n", `a.mtx:1: found "\x7fELF\x02\x00", ` + banner},
		{"format", "%%MatrixMarket matrix sparse real general\n", `a.mtx:1: found format "sparse", expected coordinate or array`},
		{"complex", "%%MatrixMarket matrix coordinate complex general\n", `a.mtx:1: found values of kind "complex", expected real, integer or pattern; complex ones are not supported`},
		{"hermitian", "%%MatrixMarket matrix coordinate real Hermitian\n", `a.mtx:1: found symmetry "hermitian", expected general, symmetric or skew-symmetric; hermitian is not supported`},
		{"pattern array", "%%MatrixMarket matrix array pattern general\n", "a.mtx:1: found a pattern in array format, expected coordinate: an array has values"},
		{"skew pattern", "%%MatrixMarket matrix coordinate pattern skew-symmetric\n", "a.mtx:1: found a skew-symmetric pattern, expected real or integer: skew-symmetric values have signs"},

		{"no size", real + "%\n\n", "a.mtx:3: found the end of the file, expected rows, columns and the number of entries"},
		{"long size", real + "3 3 3 3\n", `a.mtx:2: found "3 3 3 3", expected rows, columns and the number of entries`},
		{"long array size", array + "3 3 3\n", `a.mtx:2: found "3 3 3", expected rows and columns`},
		{"negative size", real + "3 -3 3\n", `a.mtx:2: found "3 -3 3", expected rows, columns and the number of entries`},
		{"size beyond 64 bits", real + "3 3 99999999999999999999\n", `a.mtx:2: found "3 3 99999999999999999999", expected rows, columns and the number of entries`},
		{"too many rows", real + "1000000000000000 1 3\n", "a.mtx:2: found 1000000000000000 rows and 1 columns, expected up to 2147483647 of them"},
		{"too many columns", real + "1 2147483648 3\n", "a.mtx:2: found 1 rows and 2147483648 columns, expected up to 2147483647 of them"},
		{"implausibly many rows", real + "2000000000 2 1\n1 1 1\n", "a.mtx:2: found 2000000000 rows and 2 columns, but 1 entries, expected up to 4194304 of them, or up to 16 for each entry"},
		{"implausibly many columns", array + "0 2000000000\n", "a.mtx:2: found 0 rows and 2000000000 columns, but 0 entries, expected up to 4194304 of them, or up to 16 for each entry"},
		{"not square", symmetric + "2 3 0\n", "a.mtx:2: found 2 rows and 3 columns, expected equally many: the matrix is symmetric"},

		{"too few entries", real + "3 3 1000000000000000000\n1 1 1\n", "a.mtx:3: found the end of the file after 1 entries, expected the 1000000000000000000 that line 2 announces"},
		{"too few in an array", array + "2000000000 2000000000\n1\n", "a.mtx:3: found the end of the file after 1 entries, expected the 4000000000000000000 that line 2 announces"},
		{"too many entries", real + "3 3 1\n1 1 1\n%\n2 2 1\n", `a.mtx:5: found "2 2 1", expected the end of the file after the 1 entries that line 2 announces`},
		{"row 0", real + "3 3 1\n0 1 1\n", `a.mtx:3: found "0 1 1", expected a row from 1 to 3`},
		{"row too large", real + "3 4 1\n4 1 1\n", `a.mtx:3: found "4 1 1", expected a row from 1 to 3`},
		{"row no integer", real + "3 4 1\n1.5 1 1\n", `a.mtx:3: found "1.5 1 1", expected a row from 1 to 3`},
		{"column 0", real + "3 4 1\n1 0 1\n", `a.mtx:3: found "1 0 1", expected after the row a column from 1 to 4`},
		{"column too large", real + "3 4 1\n1 5 1\n", `a.mtx:3: found "1 5 1", expected after the row a column from 1 to 4`},
		{"column missing", real + "3 4 1\n1\n", `a.mtx:3: found "1", expected after the row a column from 1 to 4`},
		{"value missing", real + "3 3 1\n1 1\n", `a.mtx:3: found "1 1", ` + value},
		{"two values", real + "3 3 1\n1 1 2 0\n", `a.mtx:3: found "1 1 2 0", ` + value},
		{"no number", real + "3 3 1\n1 1 x\n", `a.mtx:3: found "1 1 x", ` + value},
		{"NaN", real + "3 3 1\n1 1 NaN\n", `a.mtx:3: found "1 1 NaN", ` + value},
		{"Inf", real + "3 3 1\n1 1 -inf\n", `a.mtx:3: found "1 1 -inf", ` + value},
		{"overflow", real + "3 3 1\n1 1 1e309\n", `a.mtx:3: found "1 1 1e309", ` + value},
		{"hexadecimal", real + "3 3 1\n1 1 0x1p2\n", `a.mtx:3: found "1 1 0x1p2", ` + value},
		{"in an array", array + "2 1\n1\n1 2\n", `a.mtx:4: found "1 2", expected a finite real number`},
		{"no integer", integer + "3 3 1\n1 1 2.0\n", `a.mtx:3: found "1 1 2.0", expected after the row and the column an integer`},
		{"value in a pattern", pattern + "3 3 1\n1 1 1\n", `a.mtx:3: found "1 1 1", expected a row and a column only: the matrix is a pattern`},
		{"both triangles", symmetric + "3 3 3\n2 1 1\n1 1 1\n1 2 1\n", `a.mtx:5: found "1 2 1", expected the triangle that line 3 is in: the matrix is symmetric`},
		{"skew diagonal", skew + "3 3 1\n2 2 1\n", `a.mtx:3: found "2 2 1", expected 0 on the diagonal: the matrix is skew-symmetric`},
		{"infinite sum", real + "3 3 2\n2 3 1e308\n2 3 1e308\n", "a.mtx: found entries of row 2 and column 3 that add up to +Inf, expected a finite sum"},
		{"long line", real + "3 3 1\n1 1" + strings.Repeat(" ", maxLine) + "1\n", `a.mtx:3: found "1 1", expected a line shorter than 262144 bytes`},
		{"quote is cut", real + "3 3 1\n" + strings.Repeat("9", 100) + "\n", `a.mtx:3: found "` + strings.Repeat("9", 60) + `"…, expected a row from 1 to 3`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := Read(strings.NewReader(tt.text), "a.mtx")
			assert.Nil(t, m)
			assert.EqualError(t, err, tt.want)
			var format *FormatError
			require.ErrorAs(t, err, &format)
			assert.Equal(t, "a.mtx", format.File)
		})
	}
}

func TestReadReturnsTheReadersError(t *testing.T) {
	broken := errors.New("broken")
	_, err := Read(io.MultiReader(strings.NewReader("%%MatrixMarket matrix array real general\n1 1\n"), iotest.ErrReader(broken)), "a.mtx")
	assert.ErrorIs(t, err, broken)
	assert.EqualError(t, err, "a.mtx:3: broken")
}

func zipped(t *testing.T, text []byte) []byte {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err := z.Write(text)
	require.NoError(t, errors.Join(err, z.Close()))
	return packed.Bytes()
}

// written writes a file and returns its path.
func written(t *testing.T, name string, content []byte) string {
	name = filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(name, content, 0o666))
	return name
}

// What has to be unpacked is named, and its bytes are not shown.
func TestArchives(t *testing.T) {
	const banner = "%%MatrixMarket matrix array real general\n1 1\n5\n"
	var tarred bytes.Buffer
	w := tar.NewWriter(&tarred)
	require.NoError(t, w.WriteHeader(&tar.Header{Name: "a/a.mtx", Size: int64(len(banner))}))
	_, err := w.Write([]byte(banner))
	require.NoError(t, errors.Join(err, w.Close()))
	const long = 300_000 // longer than a line may be
	for _, c := range []struct{ what, text string }{
		{"a file that bzip2 has compressed", "BZh9" + strings.Repeat("x", long)},
		{"a file that xz has compressed", "\xfd7zXZ\x00\x00\x04"},
		{"a file that zstd has compressed", "\x28\xb5\x2f\xfd\x04\x00"},
		{"a file that lz4 has compressed", "\x04\x22\x4d\x18\x64"},
		{"a file that compress has compressed", "\x1f\x9d\x90"},
		{"a 7z archive", "7z\xbc\xaf\x27\x1c\x00\x04"},
		{"data that gzip has compressed", string(zipped(t, []byte(banner)))},
		{"a zip archive", "PK\x03\x04\x14"},
		{"a tar archive", tarred.String()},
	} {
		_, err := Read(strings.NewReader(c.text), "a.mtx")
		assert.EqualError(t, err, "a.mtx: found "+c.what+", expected text, or a file of text that gzip has compressed")
	}
	name := written(t, "a.tar.gz", zipped(t, tarred.Bytes())) // what SuiteSparse's collection has
	_, err = ReadFile(name)
	assert.EqualError(t, err, name+": found a tar archive, expected text, or a file of text that gzip has compressed")
}

// The contents show whether a file is compressed, not its name.
func TestReadFile(t *testing.T) {
	text := []byte("%%MatrixMarket matrix coordinate real general\n4 1 2\n3 1 5\n1 1 2\n")
	packed := zipped(t, text)
	for _, name := range []string{written(t, "v.mtx.gz", packed), written(t, "v.mtx", packed), written(t, "v.mtx.gz", text)} {
		v, err := ReadVector(name)
		require.NoError(t, err)
		assert.Equal(t, []float64{2, 0, 5, 0}, v)
	}

	damaged := bytes.Clone(packed)
	damaged[len(damaged)-6]++
	for want, content := range map[string][]byte{
		"the compressed file ends in the middle, expected all of it": packed[:len(packed)-10],
		": the compressed file ends in the middle":                   {0x1f, 0x8b},
		"the compressed file is damaged":                             damaged,
		"empty":                                                      nil,
	} {
		name := written(t, "v.mtx.gz", content)
		_, err := ReadVector(name)
		assert.ErrorContains(t, err, name+":")
		assert.ErrorContains(t, err, want)
	}
	_, err := ReadFile(written(t, "v.mtx.gz", packed[:len(packed)-10]))
	assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
	_, err = ReadFile("missing.mtx")
	assert.ErrorIs(t, err, os.ErrNotExist)
	name := filepath.Join(testdata, "skew-6.mtx")
	_, err = ReadVector(name)
	assert.EqualError(t, err, name+":4: found 6 columns, expected 1: a vector")
}

func TestWrite(t *testing.T) {
	tests := []struct {
		name    string
		entries []Triplet
		comment string
		want    string
	}{
		{"general", []Triplet{{0, 1, 0.1}, {1, 0, 2}}, "", "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 2 0.1\n2 1 2\n"},
		{"symmetric", []Triplet{{0, 1, 2}, {1, 0, 2}, {1, 1, -1e-300}}, "one\ntwo", "%%MatrixMarket matrix coordinate real symmetric\n% one\n% two\n2 2 2\n2 1 2\n2 2 -1e-300\n"},
		{"skew", []Triplet{{0, 1, -2}, {1, 0, 2}}, "one\r\n\n", "%%MatrixMarket matrix coordinate real skew-symmetric\n% one\n% \n2 2 1\n2 1 2\n"},
		{"symmetric values, not the pattern", []Triplet{{0, 1, 0}}, "", "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 0\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := NewCSR(2, 2, tt.entries)
			require.NoError(t, err)
			var buf bytes.Buffer
			require.NoError(t, Write(&buf, m, tt.comment))
			assert.Equal(t, tt.want, buf.String())
			again, err := Read(&buf, tt.name)
			require.NoError(t, err)
			assert.Equal(t, m, again)
		})
	}
	m, err := NewCSR(2, 2, []Triplet{{1, 0, math.NaN()}})
	require.NoError(t, err)
	assert.EqualError(t, Write(io.Discard, m, ""), "sparse: Write of NaN in row 1, column 0, expected a finite number")
	assert.ErrorIs(t, Write(full{}, readTestdata(t, "convection-64.mtx.gz"), ""), io.ErrShortWrite)
}

// full is a disk that has no room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

// dense returns the rows of m.
func dense(m *CSR) [][]float64 {
	rows := make([][]float64, m.Rows)
	for i := range rows {
		rows[i] = make([]float64, m.Cols)
		for j := range rows[i] {
			rows[i][j] = m.At(i, j)
		}
	}
	return rows
}
