package exact

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"unsafe"
)

// A Sum is a sum of float64s, or of products of two of them, without any rounding: it depends
// neither on the order of its terms, nor on how they are divided among Sums that are merged. Its
// zero value is the empty sum. It has a fixed size and no pointers, so it may be copied.
//
// Infinite and NaN terms count as in IEEE 754: infinities of both signs make the sum NaN. No sum
// of finite terms overflows or underflows before it is rounded, however large or small they are: a
// Sum has room for 2^56 of any size.
//
// A Sum consists of int64s. If those of two Sums are added up one by one, they are those of the
// merged Sum: this is how ranks merge Sums.
type Sum struct {
	// digits are those of a fixed-point number: the sum of digits[i] * 2^(32i+unit). Carries wait:
	// a digit may be negative. All but the last are less than (pending+1) * 2^32 in magnitude.
	digits  [132]int64
	pending int64 // additions since the last carry

	nans, posInfs, negInfs int64 // numbers of such terms
	negZeros, others       int64 // of finite terms
}

const (
	unit  = -2150 // below the last bit of each product of two float64s
	digit = 32    // bits

	mostPending = 1 << 30
)

// words returns all of sums as words.
func words(sums []Sum) []int64 {
	return unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(sums))), len(sums)*int(unsafe.Sizeof(Sum{})/8))
}

// The parts of the bits of a float64.
const (
	mantissa = 1<<52 - 1
	implied  = 1 << 52 // the bit of a normal number's mantissa that is not stored
	exponent = 0x7ff   // of bits >> 52
)

// Add adds x.
func (s *Sum) Add(x float64) {
	s.note(x)
	if x-x == 0 { // finite
		m, e := split(math.Float64bits(x))
		s.addAt(e+1075, 0, m, x < 0)
	}
}

// addProduct adds x·y.
func (s *Sum) addProduct(x, y float64) {
	if x == 0 || y == 0 || x-x != 0 || y-y != 0 {
		s.note(x * y)
		return
	}
	s.others++
	u, v := math.Float64bits(x), math.Float64bits(y)
	mx, ex := split(u)
	my, ey := split(v)
	hi, lo := bits.Mul64(mx, my)
	s.addAt(ex+ey, hi, lo, (u^v)>>63 == 1)
}

// note counts a term by its kind.
func (s *Sum) note(x float64) {
	switch {
	case x != x:
		s.nans++
	case x > math.MaxFloat64:
		s.posInfs++
	case x < -math.MaxFloat64:
		s.negInfs++
	case x == 0 && math.Signbit(x):
		s.negZeros++
	default:
		s.others++
	}
}

// split returns the magnitude of a finite number as m * 2^(e-1075).
func split(u uint64) (m uint64, e uint) {
	m, e = u&mantissa, uint(u>>52&exponent)
	if e == 0 {
		return m, 1
	}
	return m | implied, e
}

// addAt adds a number of 128 bits, or subtracts it, from a bit of the digits on. That of a product
// is the sum of the exponents that split has returned, that of one number its exponent + 1075.
func (s *Sum) addAt(bit uint, hi, lo uint64, negative bool) {
	if s.pending >= mostPending {
		s.carry()
	}
	s.pending++
	shift := bit % digit
	lo, mid, hi := lo<<shift, hi<<shift|lo>>1>>(63-shift), hi>>1>>(63-shift)
	d := (*[5]int64)(s.digits[bit/digit:])
	const low = 1<<digit - 1
	if negative {
		d[0] -= int64(lo & low)
		d[1] -= int64(lo >> digit)
		d[2] -= int64(mid & low)
		d[3] -= int64(mid >> digit)
		d[4] -= int64(hi)
		return
	}
	d[0] += int64(lo & low)
	d[1] += int64(lo >> digit)
	d[2] += int64(mid & low)
	d[3] += int64(mid >> digit)
	d[4] += int64(hi)
}

// carry makes all digits but the last one at least 0 and less than 2^32.
func (s *Sum) carry() {
	last := len(s.digits) - 1
	for i, d := range s.digits[:last] {
		s.digits[i+1] += d >> digit
		s.digits[i] = d & (1<<digit - 1)
	}
	s.pending = 1
}

// Merge adds all terms of t.
func (s *Sum) Merge(t *Sum) {
	u := *t
	u.carry()
	s.carry()
	to := words(unsafe.Slice(s, 1))
	for i, w := range words(unsafe.Slice(&u, 1)) {
		to[i] += w
	}
}

// MarshalBinary encodes the sum, for files and checkpoints. It returns no error.
func (s *Sum) MarshalBinary() ([]byte, error) {
	return binary.Append(nil, binary.LittleEndian, words(unsafe.Slice(s, 1)))
}

// UnmarshalBinary sets s to what MarshalBinary has encoded.
func (s *Sum) UnmarshalBinary(b []byte) error {
	if len(b) != int(unsafe.Sizeof(*s)) {
		return fmt.Errorf("exact: a Sum of %d bytes, expected %d", len(b), unsafe.Sizeof(*s))
	}
	_, err := binary.Decode(b, binary.LittleEndian, words(unsafe.Slice(s, 1)))
	return err
}
