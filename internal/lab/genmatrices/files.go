package main

import (
	"bytes"
	"fmt"

	"github.com/mpicx/go-mpicx/mpicx/sparse"
)

// A file describes one of the generated files.
type file struct {
	name    string
	formula string // describes the matrix in one line
	text    func(comment string) ([]byte, error)
}

var files = []file{
	{"poisson2d-128.mtx.gz",
		"2-D Poisson, -Δu on a 128 x 128 grid, u = 0 around it, times h²: 4 on the diagonal, -1 for each of 4 neighbours. Symmetric positive definite; condition number 6.7e3.",
		coordinate(func() (*sparse.CSR, error) { return poisson2D(128) })},
	{"poisson3d-20.mtx.gz",
		"3-D Poisson, likewise on a 20 x 20 x 20 grid: 6 on the diagonal, -1 for each of 6 neighbours. Symmetric positive definite.",
		coordinate(func() (*sparse.CSR, error) { return poisson3D(20) })},
	{"anisotropic-64.mtx.gz",
		"Anisotropic diffusion, -ε·∂²u/∂x² - ∂²u/∂y² with ε = 0.01 on a 64 x 64 grid, times h²: 2+2ε on the diagonal, -ε for the neighbours in x, -1 for those in y. Symmetric positive definite.",
		coordinate(func() (*sparse.CSR, error) { return anisotropic(64) })},
	{"convection-64.mtx.gz",
		"Convection-diffusion, -Δu + β·∇u with upwind differences and β = (0.5, 0.25)/h on a 64 x 64 grid, times h²: 4.75 on the diagonal, -1.5 west, -1 east, -1.25 south, -1 north. Nonsymmetric, a diagonally dominant M-matrix.",
		coordinate(func() (*sparse.CSR, error) { return convection(64) })},
	{"graphene-64.mtx.gz",
		"Graphene, H + 3.5t on a torus of 64 x 64 cells of two atoms, H = -t for each of 3 nearest neighbours (tight binding), in units of t. H has its spectrum in [-3t, 3t], so the shift makes this symmetric positive definite, with a condition number of 13. The Lanczos application of Shahzad et al. uses such an H.",
		coordinate(func() (*sparse.CSR, error) { return graphene(64) })},
	{"hilbert-6.mtx",
		"Hilbert matrix, 1/(i+j-1), symmetric in array format.",
		func(comment string) ([]byte, error) { return hilbert(6, comment), nil }},
	{"hilbert-6-b.mtx",
		"Right-hand side for hilbert-6.mtx, its row sums: the solution is all ones. A vector in array format.",
		func(comment string) ([]byte, error) { return hilbertSums(6, comment), nil }},
	{"integer-4.mtx",
		"2 on the diagonal and i-j two places off it, integers; CRLF line ends, a capitalized header, blank lines, one place given twice.",
		literal("%%MATRIXMARKET Matrix Coordinate INTEGER General\r\n%COMMENT\r\n\r\n4 4 9\r\n" +
			"4 4 2\r\n3 3 2\r\n2 2 2\r\n1 1 1\r\n1 3 -2\r\n% in between\r\n2 4 -2\r\n3 1 +2\r\n\r\n4 2 2\r\n1 1 1\r\n")},
	{"petersen.mtx",
		"Adjacency of the Petersen graph, a symmetric pattern.",
		literal("%%MatrixMarket matrix coordinate pattern symmetric\n%COMMENT\n10 10 15\n" +
			"2 1\n5 1\n6 1\n3 2\n7 2\n4 3\n8 3\n5 4\n9 4\n10 5\n8 6\n9 6\n9 7\n10 7\n10 8\n")},
	{"skew-6.mtx",
		"Central differences u[i+1] - u[i-1], skew-symmetric, with Fortran's D exponents. Regular, as 6 is even.",
		literal("%%MatrixMarket matrix coordinate real skew-symmetric\n%COMMENT\n6 6 5\n" +
			"2 1 -1.0D+00\n3 2 -1.0d0\n4 3 -10.0D-1\n5 4 -0.1D+01\n6 5 -1\n")},
}

// generate returns the uncompressed text of each file, by name.
func generate() (map[string][]byte, error) {
	all := make(map[string][]byte)
	for _, f := range files {
		text, err := f.text(f.formula + "\nWritten by go -C internal/lab run ./genmatrices")
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		all[f.name] = text
	}
	readme, err := readme(all)
	all["README.md"] = readme
	return all, err
}

// coordinate returns a function that writes the matrix in coordinate format.
func coordinate(matrix func() (*sparse.CSR, error)) func(string) ([]byte, error) {
	return func(comment string) ([]byte, error) {
		m, err := matrix()
		if err != nil {
			return nil, err
		}
		var buf bytes.Buffer
		err = sparse.Write(&buf, m, comment)
		return buf.Bytes(), err
	}
}

// readme returns the README: a table of the files, from the contents that the reader reads.
func readme(texts map[string][]byte) ([]byte, error) {
	var buf bytes.Buffer
	buf.WriteString(`# Matrices

Matrix Market files for the examples and tests; package mpicx/sparse reads them. ` + "`make matrices`" + ` writes them all, this
table too, and a test of internal/lab/genmatrices fails if they differ from what it would write. Grid points are
numbered with x fastest, and h is the distance between them. Entries are counted in the whole matrix; symmetric files
hold its lower triangle.

| file | rows x columns | entries | what it is |
| --- | --- | --- | --- |
`)
	for _, f := range files {
		m, err := sparse.Read(bytes.NewReader(texts[f.name]), f.name)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&buf, "| %s | %d x %d | %d | %s |\n", f.name, m.Rows, m.Cols, m.NNZ(), f.formula)
	}
	buf.WriteString(`
Graphene's cell (i, j) has atom A at index 2·(i+64·j) and atom B at the next one; A(i, j) is bonded to B(i, j),
B(i-1, j) and B(i, j-1), indices modulo 64. Shahzad et al.: Building a fault tolerant application using the GASPI
communication layer; their matrix has 1.2e8 rows and some 12 entries in each.
`)
	return buf.Bytes(), nil
}
