package main

import (
	"bytes"
	"compress/gzip"
	"context"
	_ "embed"
	"fmt"
	"io"
	"math"
	"math/rand/v2"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/distributed"
	"github.com/mpicx/go-mpicx/mpicx/krylov"
	"github.com/mpicx/go-mpicx/mpicx/sparse"
)

// poisson2d is testdata/matrices/poisson2d-128.mtx.gz: a copy, since a package can
// embed its own files only.
//
//go:embed poisson2d-128.mtx.gz
var poisson2d []byte

// A system is a rank's part of the system, and properties of the whole that all ranks know.
type system struct {
	krylov.System
	comm  *mpicx.Comm
	a     *distributed.Matrix
	want  []float64 // the solution, if it is known
	nnz   int       // of the whole matrix
	normA float64   // the largest sum of magnitudes in a row
	normB float64
}

// readSystem reads the system and divides it among the ranks. It is collective.
func readSystem(ctx context.Context, comm *mpicx.Comm, cfg *config) (*system, error) {
	s := &system{comm: comm}
	var err error
	if cfg.matrix == "" {
		var r io.Reader
		if r, err = gzip.NewReader(bytes.NewReader(poisson2d)); err == nil {
			s.a, err = distributed.Read(ctx, comm, r, cfg.Matrix)
		}
	} else {
		s.a, err = distributed.ReadFile(ctx, comm, cfg.matrix)
	}
	if err != nil {
		return nil, err
	}
	if s.a.Size() == 0 {
		return nil, fmt.Errorf("%s: 0 x 0, expected a row at least", cfg.matrix)
	}
	if cfg.Method == "cg" {
		if symmetric, err := s.a.Symmetric(ctx); err != nil {
			return nil, err
		} else if !symmetric {
			return nil, fmt.Errorf("-method cg: %s is not symmetric, expected a symmetric matrix; use gmres or bicgstab", cfg.Matrix)
		}
	}
	s.Space, s.A = distributed.Space{Comm: comm}, s.a
	switch cfg.Precond {
	case "jacobi":
		s.M, err = distributed.Jacobi(s.a)
	case "blockjacobi":
		s.M, err = distributed.BlockJacobi(s.a)
	}
	if err != nil {
		return nil, err
	}
	if err := s.readB(ctx, comm, cfg); err != nil {
		return nil, err
	}
	if s.normA, err = s.a.Norm(ctx); err != nil {
		return nil, err
	}
	s.normB = norm(ctx, s.Space, s.B)
	nnz := make([]int, 1)
	mpicx.Allreduce(comm, []int{s.a.NNZ()}, nnz, mpicx.Sum).MustWait(ctx)
	s.nnz = nnz[0]
	return s, nil
}

// readB reads the right-hand side, or computes it from the known solution.
func (s *system) readB(ctx context.Context, comm *mpicx.Comm, cfg *config) error {
	s.B = make([]float64, s.a.Rows())
	if cfg.RHS == "" {
		s.want = knownSolution(s.a.First(), s.a.Rows())
		s.a.Apply(ctx, s.B, s.want)
		return nil
	}
	var whole []float64
	if comm.Rank() == 0 {
		var err error
		if whole, err = sparse.ReadVector(cfg.RHS); err != nil {
			return err
		}
		if len(whole) != s.a.Size() {
			return fmt.Errorf("-rhs %s: %d rows, expected %d, as the matrix has", cfg.RHS, len(whole), s.a.Size())
		}
	}
	return mpicx.Scatterv(comm, whole, s.a.Counts(), s.B, 0).Wait(ctx)
}

// knownSolution returns elements of the known solution: numbers from 0.5 to 1.5, in which no
// frequency is missing. They do not depend on how the rows are divided.
func knownSolution(first, rows int) []float64 {
	random := rand.New(rand.NewPCG(4, 2))
	for range first {
		random.Float64()
	}
	x := make([]float64, rows)
	for i := range x {
		x[i] = 0.5 + random.Float64()
	}
	return x
}

// distance returns the relative distance of x from the known solution.
func (s *system) distance(ctx context.Context, x []float64) float64 {
	d := make([]float64, len(x))
	for i := range x {
		d[i] = x[i] - s.want[i]
	}
	return norm(ctx, s.Space, d) / norm(ctx, s.Space, s.want)
}

// norm returns the norm of a vector that is divided among the ranks of the space.
func norm(ctx context.Context, space krylov.Space, x []float64) float64 {
	part, all := make([]float64, 1), make([]float64, 1)
	for _, v := range x {
		part[0] += v * v
	}
	space.Sum(part, all).MustWait(ctx)
	return math.Sqrt(all[0])
}
