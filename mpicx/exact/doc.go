// Package exact adds up float64s and float32s without rounding: the result is the number nearest to
// the true sum, the same bits in every order of the terms and on any number of ranks. Dot and Norm
// do the same for products.
//
// A [Sum] is a fixed-point number that is wide enough for every product of two float64s (Kulisch,
// Computer Arithmetic and Validity, 2nd ed., 2013). Terms are first added up by exponent, in
// integers, as in the large superaccumulator of Neal (Fast exact summation using small and large
// superaccumulators, arXiv:1505.05571); products are split into two float64s by fused
// multiply-add. The reproducible sums of Ahrens, Demmel and Nguyen (Algorithms for efficient
// reproducible floating point summation, ACM Trans. Math. Softw. 46, 2020) take less space, but are
// rounded, and depend on a choice of bins.
//
// It must never know how vectors are divided: see package distributed.
package exact
