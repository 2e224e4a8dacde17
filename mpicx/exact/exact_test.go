package exact_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/exact"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

func wide(x float64) *big.Float { return new(big.Float).SetPrec(4400).SetFloat64(x) }

// byBig returns what package big has for the sum of x, and for that of x[i]·y[i].
func byBig(x, y []float64) (sum, dot *big.Float) {
	if len(x) == 0 {
		return wide(0), wide(0)
	}
	sum, dot = wide(math.Copysign(0, -1)), wide(math.Copysign(0, -1))
	for i, v := range x {
		sum.Add(sum, wide(v))
		dot.Add(dot, new(big.Float).SetPrec(4400).Mul(wide(v), wide(y[i])))
	}
	return sum, dot
}

// requireIs checks that s is the sum that package big has, bit by bit.
func requireIs(t *testing.T, want *big.Float, s *exact.Sum) {
	t.Helper()
	want64, _ := want.Float64()
	require.Equal(t, math.Float64bits(want64), math.Float64bits(s.Float64()), "%g, expected %g", s.Float64(), want64)
	want32, _ := want.Float32()
	require.Equal(t, math.Float32bits(want32), math.Float32bits(s.Float32()), "%g, expected %g", s.Float32(), want32)
	if root, _ := new(big.Float).Sqrt(new(big.Float).SetPrec(100).Abs(want)).Float64(); want.Sign() > 0 && root <= math.MaxFloat64 {
		require.LessOrEqual(t, math.Abs(s.Sqrt()-root), math.Nextafter(root, math.Inf(1))-root)
	}
}

// check compares sums and products with those of package big: all at once, and one by one in
// another order and division.
func check(t *testing.T, x []float64, random *rand.Rand) {
	t.Helper()
	y := slices.Clone(x)
	random.Shuffle(len(y), func(i, j int) { y[i], y[j] = y[j], y[i] })
	sum, dot := byBig(x, y)
	var s, d exact.Sum
	s.AddAll(x)
	d.AddProducts(x, y)
	requireIs(t, sum, &s)
	requireIs(t, dot, &d)

	var parts, products [3]exact.Sum
	for _, i := range random.Perm(len(x)) {
		p := random.IntN(3)
		parts[p].Add(x[i])
		products[p].AddProducts(x[i:i+1], y[i:i+1])
	}
	for p := range 2 {
		parts[2].Merge(&parts[p])
		products[2].Merge(&products[p])
	}
	requireIs(t, sum, &parts[2])
	requireIs(t, dot, &products[2])

	x32, y32 := make([]float32, len(x)), make([]float32, len(x))
	for i := range x {
		if x32[i], y32[i] = float32(x[i]), float32(y[i]); math.IsInf(float64(x32[i]), 0) || math.IsInf(float64(y32[i]), 0) {
			x32[i], y32[i] = 1, 1
		}
		x[i], y[i] = float64(x32[i]), float64(y32[i])
	}
	sum, dot = byBig(x, y)
	s, d = exact.Sum{}, exact.Sum{}
	s.AddAll32(x32)
	d.AddProducts32(x32, y32)
	requireIs(t, sum, &s)
	requireIs(t, dot, &d)
}

// The result is that of package big for numbers of every size, in every order.
func TestCorrectlyRounded(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	between := func(lo, hi int) func() float64 { // exponents
		return func() float64 {
			return math.Ldexp(float64(random.Int64N(1<<54)-1<<53), lo-53+random.IntN(hi-lo))
		}
	}
	for name, number := range map[string]func() float64{
		"every size":     between(-1074, 1024),
		"usual":          between(-10, 10),
		"tiny":           between(-1074, -1000),
		"tiny products":  between(-600, -400),
		"huge":           between(1000, 1024),
		"edge of tables": between(-70, -50),
		"tiny errors":    func() float64 { return math.Ldexp(1+0x1p-52*float64(random.IntN(3)), -63) },
		"few bits":       func() float64 { return math.Ldexp(float64(random.IntN(5)-2), random.IntN(120)) },
		"zeros":          func() float64 { return math.Copysign(0, float64(random.IntN(16)-1)) },
	} {
		t.Run(name, func(t *testing.T) {
			for _, n := range []int{0, 1, 2, 3, 7, 31, 32, 100, 5000} {
				x := make([]float64, n)
				for i := range x {
					x[i] = number()
					if i > 0 && random.IntN(3) == 0 { // most of it is cancelled
						x[i] = -x[random.IntN(i)]
					}
				}
				check(t, x, random)
			}
		})
	}
}

func FuzzCorrectlyRounded(f *testing.F) {
	for _, x := range [][]float64{{1, 0x1p-53}, {1, 0x1p-53, 0x1p-1074}, {math.MaxFloat64, 0x1p970}, {math.MaxFloat64, 0x1p969}, {-0x1p-1074, 0x1p-1022}} {
		b, err := binary.Append(nil, binary.LittleEndian, x)
		require.NoError(f, err)
		f.Add(b, uint64(0))
	}
	f.Fuzz(func(t *testing.T, b []byte, seed uint64) {
		x := make([]float64, min(len(b)/8, 64))
		_ = binary.Read(bytes.NewReader(b), binary.LittleEndian, x)
		for i, v := range x {
			if v-v != 0 {
				x[i] = 1
			}
		}
		check(t, x, rand.New(rand.NewPCG(seed, 0)))
	})
}

func TestSpecialValues(t *testing.T) {
	inf, nan, negZero := math.Inf(1), math.NaN(), math.Copysign(0, -1)
	for _, test := range []struct {
		x    []float64
		want float64
	}{
		{nil, 0},
		{[]float64{negZero, negZero}, negZero},
		{[]float64{negZero, 0}, 0},
		{[]float64{1, -1, negZero}, 0},
		{[]float64{-0x1p-1074, 0x1p-1074}, 0},
		{[]float64{inf, 1, inf}, inf},
		{[]float64{-inf, math.MaxFloat64}, -inf},
		{[]float64{inf, -inf}, nan},
		{[]float64{1, nan, inf}, nan},
		{[]float64{math.MaxFloat64, math.MaxFloat64, -math.MaxFloat64}, math.MaxFloat64},
		{[]float64{math.MaxFloat64, math.MaxFloat64}, inf},
		{[]float64{-math.MaxFloat64, -0x1p970}, -inf},
	} {
		x := append(test.x, slices.Repeat([]float64{1, -1}, 20)...)
		for n := len(test.x); n <= len(x); n += 40 { // one by one, and in tables
			if want := test.want; n == len(test.x) || want != 0 {
				var s, d exact.Sum
				s.AddAll(x[:n])
				d.AddProducts(x[:n], slices.Repeat([]float64{1}, n))
				for _, s := range []exact.Sum{s, d} {
					got := s.Float64()
					assert.True(t, want != want && got != got || math.Float64bits(want) == math.Float64bits(got), "%v: %v, expected %v", x[:n], got, want)
				}
			}
		}
	}
	assert.True(t, math.IsNaN(exact.Dot([]float64{0}, []float64{inf})))
	assert.True(t, math.Signbit(exact.Dot([]float64{0, -0x1p-1000}, []float64{-1, 0x1p-1000})), "the product is too small for a float64, but not 0")
	assert.Equal(t, 0x5p600, exact.Norm([]float64{0x3p600, -0x4p600}))
	assert.Equal(t, 0x5p-1074, exact.Norm([]float64{0x3p-1074, 0x4p-1074}))
	assert.Panics(t, func() { exact.Dot([]float64{1}, make([]float64, 0, 5)) })
}

// A Sum has room for many terms, and is the same after a file.
func TestManyTerms(t *testing.T) {
	var s exact.Sum
	s.Add(-3)
	for range 70 {
		s.Merge(&s)
	}
	b, err := s.MarshalBinary()
	require.NoError(t, err)
	var u exact.Sum
	require.NoError(t, u.UnmarshalBinary(b))
	u.Add(0x1p70)
	assert.Equal(t, -0x1p71, u.Float64())
	assert.EqualError(t, u.UnmarshalBinary(b[1:]), "exact: a Sum of 1103 bytes, expected 1104")
}

// The ranks have the sum of all terms, however these are divided.
func TestAllreduce(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	x := make([]float64, 100)
	for i := range x {
		x[i] = math.Ldexp(random.NormFloat64(), random.IntN(200))
	}
	want, wantSquares := byBig(x, x)
	for ranks := 1; ranks <= 7; ranks++ {
		mpicxtest.Run(t, ranks, func(ctx context.Context, world *mpicx.Comm) error {
			s := make([]exact.Sum, 2)
			for i := world.Rank(); i < len(x); i += ranks {
				s[0].Add(x[i])
				s[1].AddProducts(x[i:i+1], x[i:i+1])
			}
			err := exact.Allreduce(world, s, s).Wait(ctx)
			requireIs(t, want, &s[0])
			requireIs(t, wantSquares, &s[1])
			return err
		})
	}
}
