package main

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/lapack/gonum"
)

// lowest returns the lowest eigenvalues of the tridiagonal matrix, at most count, each once.
//
// Rounding errors make Lanczos's algorithm find eigenvalues repeatedly, and spurious ones besides.
// The test of Cullum and Willoughby, "Computing eigenvalues of very large symmetric matrices",
// 1981, recognizes spurious eigenvalues: they are simple, and are also eigenvalues of the matrix
// without its first row and column, because they hardly depend on the first vector.
func lowest(alpha, beta []float64, count int) []float64 {
	n := len(alpha)
	if n == 0 {
		return nil
	}
	all := eigenvalues(alpha, beta[:n-1])
	rest := eigenvalues(alpha[1:], beta[min(1, n-1):n-1])
	gap := 1e-10 * max(math.Abs(all[0]), math.Abs(all[n-1]))
	var found []float64
	for i := 0; i < n && len(found) < count; {
		end := i + 1
		for end < n && all[end]-all[end-1] <= gap {
			end++
		}
		at, _ := slices.BinarySearch(rest, all[i]-gap)
		if spurious := at < len(rest) && rest[at] <= all[i]+gap; end-i > 1 || !spurious {
			found = append(found, all[(i+end-1)/2]) // the first may be the next copy, which has not converged yet
		}
		i = end
	}
	return found
}

// eigenvalues returns the eigenvalues of a symmetric tridiagonal matrix, increasing, by LAPACK's
// variant of the QL method.
func eigenvalues(diagonal, beside []float64) []float64 {
	d, e := slices.Clone(diagonal), slices.Clone(beside)
	if !(gonum.Implementation{}).Dsterf(len(d), d, e) {
		panic(fmt.Sprintf("the QL method finds no eigenvalue of a matrix of order %d, expected one after at most 30 steps", len(d)))
	}
	return d
}
