package element_test

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/element"
	"github.com/mpicx/go-mpicx/internal/signature"
)

// Types that may be those of elements.
func TestFit(t *testing.T) {
	type pair struct {
		None [0]string
		_    int32
		Size uintptr
	}
	for _, test := range []struct {
		of   *element.Type
		size uintptr
		want signature.Element
	}{
		{element.TypeOf[float64](), 8, signature.Float64},
		{element.TypeOf[celsius](), 8, signature.Float64},
		{element.TypeOf[int](), unsafe.Sizeof(0), signature.Int},
		{element.TypeOf[byte](), 1, signature.Bytes},
		{element.TypeOf[uintptr](), unsafe.Sizeof(uintptr(0)), signature.Bytes},
		{element.TypeOf[complex64](), 8, signature.Complex64},
		{element.TypeOf[[3]int16](), 6, signature.Struct},
		{element.TypeOf[pair](), unsafe.Sizeof(pair{}), signature.Struct},
	} {
		require.NoError(t, test.of.Unfit)
		require.NoError(t, test.of.Pointers)
		require.Equal(t, int(test.size), test.of.Size)
		require.Equal(t, test.want, test.of.Element)
		require.Equal(t, test.want, test.of.Signature.Element())
	}
	require.Same(t, element.TypeOf[pair](), element.TypeOf[pair]())
}

// Types that may not be, and which of them a reduction takes.
func TestUnfit(t *testing.T) {
	type named struct {
		ID   int
		Name string
	}
	type nested struct{ Head struct{ Parts named } }
	for of, want := range map[*element.Type]string{
		element.TypeOf[nested]():         "element_test.nested have pointers: field Head.Parts.Name string",
		element.TypeOf[[2]map[int]int](): "[2]map[int]int have pointers",
		element.TypeOf[any]():            "interface {} have pointers",
	} {
		want = "elements of type " + want + ", expected a type of fixed size without any"
		require.EqualError(t, of.Unfit, want)
		require.EqualError(t, of.Pointers, want)
	}
	for of, want := range map[*element.Type]string{
		element.TypeOf[struct{}]():  "elements of type struct {} have no bytes, expected at least one",
		element.TypeOf[[0]string](): "elements of type [0]string have no bytes, expected at least one",
	} {
		require.EqualError(t, of.Unfit, want)
		require.NoError(t, of.Pointers)
	}
}

// Structs have the same signature if their fields have the same types and offsets.
func TestSignaturesOfStructs(t *testing.T) {
	type particle struct {
		Mass float64
		Kind int32
	}
	type same struct {
		A float64
		B int32
	}
	type other struct {
		Mass float32
		Kind int64
	}
	of := element.TypeOf[particle]().Signature
	require.Equal(t, of, element.TypeOf[same]().Signature)
	require.NotEqual(t, of, element.TypeOf[other]().Signature)
	require.NotEqual(t, element.TypeOf[[2]float64]().Signature, element.TypeOf[[2]int64]().Signature)
}

// A buffer as bytes and back, in parts, and what overlaps.
func TestMemory(t *testing.T) {
	buf := []int32{1, 2, 3, 4, 5}
	require.NotNil(t, element.Bytes(buf[:0]))
	require.Len(t, element.Bytes(buf), 20)
	require.Same(t, &buf[0], &element.Slice[int32](element.Bytes(buf))[0])
	require.Equal(t, [][]byte{element.Bytes(buf[:2]), {}, element.Bytes(buf[2:])}, element.Parts(buf, []int{2, 0, 3}))
	require.Equal(t, [][]byte{element.Bytes(buf[:2]), element.Bytes(buf[2:4])}, element.EqualParts(buf, 2))
	for _, test := range []struct {
		a, b []int32
		want bool
	}{
		{buf[:2], buf[1:], true}, {buf[1:], buf[:2], true}, {buf, buf[2:3], true},
		{buf[:2], buf[2:], false}, {buf[2:], buf[:2], false}, {buf, buf[2:2], false}, {nil, buf, false},
	} {
		require.Equal(t, test.want, element.Overlap(element.Bytes(test.a), element.Bytes(test.b)))
	}
}
