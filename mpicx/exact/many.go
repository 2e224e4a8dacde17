package exact

import (
	"fmt"
	"math"
	"math/bits"
)

// A table has a number for each value of the upper 12 bits of a float64, its sign and exponent: the
// sum of the mantissas of the terms that have these. So a term takes one addition of integers
// (Neal). As mantissas have 53 bits, there is room for 2^11 of them.
type table [1 << 12]uint64

// Terms go to the table if their exponent, in the bits of a float64, is from low to high-1. This is
// about the range of float32s. Others are rare, and without them the table is emptied sooner. The
// rounding error of a product is smaller by a factor of at most 2^106, so it is a normal number, or
// 0. What is added up for exponent 0 has no meaning, and is not used.
const (
	low      = 1023 - 127
	high     = 1023 + 129
	smallest = low - 112 // a multiple of 8 below low

	most  = 1 << 10 // of products from one emptying to the next, each of which has two terms
	short = 32      // below this number of terms a table is not worth its while
)

// AddAll adds all elements of x. It is faster than Add.
func (s *Sum) AddAll(x []float64) { addAll(s, x) }

// AddAll32 is AddAll of float32s.
func (s *Sum) AddAll32(x []float32) { addAll(s, x) }

// AddProducts adds x[i]·y[i] for all i. Products are not rounded, and don't overflow or underflow.
// It panics unless x and y have the same length.
func (s *Sum) AddProducts(x, y []float64) {
	mustMatch(len(x), len(y))
	if len(x) < short {
		for i, a := range x {
			s.addProduct(a, y[i])
		}
		return
	}
	var t table
	for len(x) > 0 {
		n := min(len(x), most)
		for i := 0; i < n; i++ {
			i += addProducts(&t, x[i:n], y[i:n], mantissa, implied)
			if i < n {
				s.addProduct(x[i], y[i])
			}
		}
		s.empty(&t)
		x, y = x[n:], y[n:]
	}
}

// AddProducts32 is AddProducts of float32s.
func (s *Sum) AddProducts32(x, y []float32) {
	mustMatch(len(x), len(y))
	var products [512]float64 // which have at most 48 bits, and are not rounded
	for len(x) > 0 {
		n := min(len(x), len(products))
		for i, a := range x[:n] {
			products[i] = float64(a) * float64(y[i])
		}
		s.AddAll(products[:n])
		x, y = x[n:], y[n:]
	}
}

func mustMatch(x, y int) {
	if x != y {
		panic(fmt.Sprintf("exact: products of %d numbers and %d, expected as many", x, y))
	}
}

func addAll[F float32 | float64](s *Sum, x []F) {
	if len(x) < short {
		for _, a := range x {
			s.Add(float64(a))
		}
		return
	}
	var t table
	for len(x) > 0 {
		n := min(len(x), 2*most)
		for i := 0; i < n; i++ {
			i += addTerms(&t, x[i:n], mantissa, implied)
			if i < n {
				s.Add(float64(x[i]))
			}
		}
		s.empty(&t)
		x = x[n:]
	}
}

// The loops below are fast because they are short. They are given the constants so that these stay
// in registers, and return at the first term that is not for the table.

//go:noinline
func addTerms[F float32 | float64](t *table, x []F, mantissa, implied uint64) int {
	for i, a := range x {
		u := math.Float64bits(float64(a))
		if u>>52&exponent-low >= high-low {
			return i
		}
		t[u>>52] += u&mantissa | implied
	}
	return len(x)
}

// addProducts adds x·y = p + q, where p is the rounded product and q its error, which is a float64
// too (Dekker).
//
//go:noinline
func addProducts(t *table, x, y []float64, mantissa, implied uint64) int {
	y = y[:len(x)]
	for i, a := range x {
		b := y[i]
		p := a * b
		q := math.FMA(a, b, -p)
		u, v := math.Float64bits(p), math.Float64bits(q)
		if u>>52&exponent-low >= high-low {
			return i
		}
		t[u>>52] += u&mantissa | implied
		t[v>>52] += v&mantissa | implied
	}
	return len(x)
}

// empty adds what is in the table to s.
func (s *Sum) empty(t *table) {
	for e := smallest; e < high; e += 8 {
		p, n := (*[8]uint64)(t[e:]), (*[8]uint64)(t[1<<11+e:])
		if p[0]|p[1]|p[2]|p[3]|p[4]|p[5]|p[6]|p[7]|n[0]|n[1]|n[2]|n[3]|n[4]|n[5]|n[6]|n[7] == 0 {
			continue
		}
		s.others++
		hi, lo := group(p)
		s.addAt(uint(e)+1075, hi, lo, false)
		hi, lo = group(n)
		s.addAt(uint(e)+1075, hi, lo, true)
		*p, *n = [8]uint64{}, [8]uint64{}
	}
}

// group returns the sum of t[i]·2^i.
func group(t *[8]uint64) (hi, lo uint64) {
	for i := 7; i >= 0; i-- {
		var c uint64
		hi = hi<<1 | lo>>63
		lo, c = bits.Add64(lo<<1, t[i], 0)
		hi += c
	}
	return hi, lo
}
