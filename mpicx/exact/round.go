package exact

import (
	"math"
	"math/bits"
)

// Float64 returns the float64 nearest to the sum, and of two equally near ones the even one. It is
// an infinity if the sum has one or is too large, NaN if it has a NaN or infinities of both signs,
// and -0 if it has terms and all are -0.
func (s *Sum) Float64() float64 {
	if x, ok := s.special(); ok {
		return x
	}
	return math.Ldexp(s.round(53, -1074))
}

// Float32 is Float64 for a float32. It is not rounded twice.
func (s *Sum) Float32() float32 {
	if x, ok := s.special(); ok {
		return float32(x)
	}
	return float32(math.Ldexp(s.round(24, -149)))
}

// Sqrt returns the square root of the sum as Float64 would be, with an error of less than one unit
// in the last place. The sum itself may be too large or too small for a float64. It is NaN if the
// sum is negative.
func (s *Sum) Sqrt() float64 {
	if x, ok := s.special(); ok {
		return math.Sqrt(x)
	}
	m, e := s.round(53, unit+1)
	if e&1 != 0 {
		m, e = 2*m, e-1
	}
	return math.Ldexp(math.Sqrt(m), e/2)
}

// special returns the sum if its terms alone say what it is: NaN, infinite, or -0.
func (s *Sum) special() (x float64, ok bool) {
	switch {
	case s.nans > 0 || s.posInfs > 0 && s.negInfs > 0:
		return math.NaN(), true
	case s.posInfs > 0:
		return math.Inf(1), true
	case s.negInfs > 0:
		return math.Inf(-1), true
	case s.negZeros > 0 && s.others == 0:
		return math.Copysign(0, -1), true
	}
	return 0, false
}

// round returns the sum rounded to m * 2^e, where m has at most precision bits, and e is at least
// lowest.
func (s *Sum) round(precision, lowest int) (m float64, e int) {
	w, sign := s.magnitude()
	top := len(w) - 1
	for top > 0 && w[top] == 0 {
		top--
	}
	last := max(top*64+bits.Len64(w[top])-precision, lowest-unit) // the last bit of the result
	at, shift := last/64, last%64
	q := w[at]>>shift | w[at+1]<<1<<(63-shift)
	if rest := below(w, last); rest > half || rest == half && q&1 == 1 {
		q++
	}
	return math.Copysign(float64(q), sign), last + unit
}

// magnitude returns the sum as a binary number, the least significant word first, and a number of
// its sign. The last word is 0.
func (s *Sum) magnitude() (w *[68]uint64, sign float64) {
	t := *s
	t.carry()
	if sign = 1; t.digits[len(t.digits)-1] < 0 {
		sign = -1
		for i, d := range t.digits {
			t.digits[i] = -d
		}
		t.carry()
	}
	w = new([68]uint64)
	for i, d := range t.digits {
		w[i/2] |= uint64(d) << (i % 2 * digit)
	}
	w[len(t.digits)/2] = uint64(t.digits[len(t.digits)-1]) >> digit
	return w, sign
}

const half = 2

// below compares the bits below a bit with one half of it: half if they are as much, and less or
// more if they are.
func below(w *[68]uint64, bit int) int {
	at, shift := (bit-1)/64, (bit-1)%64
	rest := w[at] & (1<<shift - 1)
	for _, v := range w[:at] {
		rest |= v
	}
	fraction := int(w[at]>>shift&1) * half
	if rest != 0 {
		fraction++
	}
	return fraction
}
