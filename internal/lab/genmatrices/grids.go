package main

import "github.com/mpicx/go-mpicx/mpicx/sparse"

// A neighbour is one arm of a stencil: the value for the point at this distance.
type neighbour struct {
	dx, dy, dz int
	val        float64
}

// stencil returns the matrix that has diag on the diagonal and arms around it, on a grid of nx x ny
// x nz points with x fastest. Arms that leave the grid are omitted: the solution is 0 there.
func stencil(nx, ny, nz int, diag float64, arms []neighbour) (*sparse.CSR, error) {
	var entries []sparse.Triplet
	index := func(x, y, z int) int32 { return int32(x + nx*(y+ny*z)) }
	for z := range nz {
		for y := range ny {
			for x := range nx {
				row := index(x, y, z)
				entries = append(entries, sparse.Triplet{Row: row, Col: row, Val: diag})
				for _, a := range arms {
					x, y, z := x+a.dx, y+a.dy, z+a.dz
					if 0 <= x && x < nx && 0 <= y && y < ny && 0 <= z && z < nz {
						entries = append(entries, sparse.Triplet{Row: row, Col: index(x, y, z), Val: a.val})
					}
				}
			}
		}
	}
	n := nx * ny * nz
	return sparse.NewCSR(n, n, entries)
}

// poisson2D returns the 5-point stencil on n x n points.
func poisson2D(n int) (*sparse.CSR, error) {
	return stencil(n, n, 1, 4, []neighbour{{-1, 0, 0, -1}, {1, 0, 0, -1}, {0, -1, 0, -1}, {0, 1, 0, -1}})
}

// poisson3D returns the 7-point stencil on n x n x n points.
func poisson3D(n int) (*sparse.CSR, error) {
	return stencil(n, n, n, 6, []neighbour{
		{-1, 0, 0, -1}, {1, 0, 0, -1}, {0, -1, 0, -1}, {0, 1, 0, -1}, {0, 0, -1, -1}, {0, 0, 1, -1}})
}

// anisotropic returns a diffusion that is weaker in x by the factor 0.01.
func anisotropic(n int) (*sparse.CSR, error) {
	const eps = 0.01
	return stencil(n, n, 1, 2+2*eps, []neighbour{{-1, 0, 0, -eps}, {1, 0, 0, -eps}, {0, -1, 0, -1}, {0, 1, 0, -1}})
}

// convection returns diffusion with a wind of h·β = (0.5, 0.25), with upwind differences.
func convection(n int) (*sparse.CSR, error) {
	const bx, by = 0.5, 0.25
	return stencil(n, n, 1, 4+bx+by, []neighbour{{-1, 0, 0, -1 - bx}, {1, 0, 0, -1}, {0, -1, 0, -1 - by}, {0, 1, 0, -1}})
}

// graphene returns the shifted tight-binding Hamiltonian of a torus of n x n
// cells of the honeycomb lattice, n at least 3, in units of the hopping energy t.
//
// Atom A of cell (i, j) is bonded to the atoms B of cells (i, j), (i-1, j) and
// (i, j-1). The spectrum of the unshifted H is that of ±|1 + exp(ia) + exp(ib)|
// for a, b multiples of 2π/n: from -3 to 3, with 0 inside if n is divisible by 3.
func graphene(n int) (*sparse.CSR, error) {
	const shift, t = 3.5, 1
	var entries []sparse.Triplet
	atomA := func(i, j int) int32 { return int32(2 * (i + n*j)) }
	for j := range n {
		for i := range n {
			a := atomA(i, j)
			entries = append(entries, sparse.Triplet{Row: a, Col: a, Val: shift}, sparse.Triplet{Row: a + 1, Col: a + 1, Val: shift})
			for _, b := range []int32{a + 1, atomA((i+n-1)%n, j) + 1, atomA(i, (j+n-1)%n) + 1} {
				entries = append(entries, sparse.Triplet{Row: a, Col: b, Val: -t}, sparse.Triplet{Row: b, Col: a, Val: -t})
			}
		}
	}
	return sparse.NewCSR(2*n*n, 2*n*n, entries)
}
