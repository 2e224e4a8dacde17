package main

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"

	"github.com/mpicx/go-mpicx/examples/krylov/sparse"
)

// poisson2d is testdata/matrices/poisson2d-128.mtx.gz: a copy, since a package can
// embed its own files only.
//
//go:embed poisson2d-128.mtx.gz
var poisson2d []byte

// A problem is the system to solve, as every rank has it before it takes its part.
type problem struct {
	name    string
	m       *sparse.CSR
	b       []float64
	want    []float64 // the solution if it is known
	offsets []int     // rank r has the rows from offsets[r]
	normA   float64   // the largest sum of magnitudes in a row
	normB   float64
}

func load(cfg *config) (*problem, error) {
	p := &problem{name: "poisson2d-128"}
	var err error
	if cfg.matrix == "" {
		unzip, zerr := gzip.NewReader(bytes.NewReader(poisson2d))
		if zerr != nil {
			return nil, zerr
		}
		p.m, err = sparse.Read(unzip, p.name)
	} else {
		p.name = strings.TrimSuffix(strings.TrimSuffix(filepath.Base(cfg.matrix), ".gz"), ".mtx")
		p.m, err = sparse.ReadFile(cfg.matrix)
	}
	if err != nil {
		return nil, err
	}
	if p.m.Rows != p.m.Cols || p.m.Rows == 0 {
		return nil, fmt.Errorf("%s: %d x %d, expected a square matrix", p.name, p.m.Rows, p.m.Cols)
	}
	if cfg.method == "cg" && !symmetric(p.m) {
		return nil, fmt.Errorf("-method cg: %s is not symmetric, expected a symmetric matrix; use gmres or bicgstab", p.name)
	}

	if cfg.rhs == "" {
		p.want = knownSolution(p.m.Cols)
		p.b = make([]float64, p.m.Rows)
		p.m.MulVec(p.b, p.want)
	} else {
		if p.b, err = sparse.ReadVector(cfg.rhs); err != nil {
			return nil, err
		}
		if len(p.b) != p.m.Rows {
			return nil, fmt.Errorf("-rhs %s: %d rows, expected %d, as the matrix has", cfg.rhs, len(p.b), p.m.Rows)
		}
	}
	p.offsets = sparse.Partition(p.m, cfg.ranks)
	p.normB = norm(p.b)
	for i := range p.m.Rows {
		var sum float64
		_, values := p.m.Row(i)
		for _, v := range values {
			sum += math.Abs(v)
		}
		p.normA = max(p.normA, sum)
	}
	return p, nil
}

// layout is that of the world.
func (p *problem) layout() *layout {
	l := &layout{make([]int, len(p.offsets)-1), p.offsets}
	for i := range l.members {
		l.members[i] = i
	}
	return l
}

// knownSolution is the same at all ranks: numbers from 0.5 to 1.5, so that no
// frequency is missing.
func knownSolution(n int) []float64 {
	random := rand.New(rand.NewPCG(4, 2))
	x := make([]float64, n)
	for i := range x {
		x[i] = 0.5 + random.Float64()
	}
	return x
}

// trueResidual is |b-A·x|/|b| computed from scratch, without ranks.
func (p *problem) trueResidual(x []float64) float64 {
	r := make([]float64, p.m.Rows)
	p.m.MulVec(r, x)
	for i, b := range p.b {
		r[i] = b - r[i]
	}
	if p.normB == 0 {
		return norm(r)
	}
	return norm(r) / p.normB
}

// distance is how far x is from the known solution, relative to that.
func (p *problem) distance(x []float64) float64 {
	d := make([]float64, len(x))
	for i := range x {
		d[i] = x[i] - p.want[i]
	}
	return norm(d) / norm(p.want)
}

func norm(x []float64) float64 {
	var s float64
	for _, v := range x {
		s += v * v
	}
	return math.Sqrt(s)
}

func symmetric(m *sparse.CSR) bool {
	for i := range m.Rows {
		cols, values := m.Row(i)
		for k, j := range cols {
			if m.At(int(j), i) != values[k] {
				return false
			}
		}
	}
	return true
}
