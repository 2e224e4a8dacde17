package signature

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// String describes what a word was made of.
func TestWords(t *testing.T) {
	for _, test := range []struct {
		word Word
		want string
	}{
		{Message(Float64), "float64"},
		{Message(Bytes), "byte"},
		{Message(Value), "value"},
		{Structs(24, 7), "struct of 24 bytes"},
		{Call{Kind: Barrier, Root: 3, Count: 4}.Word(), "Barrier"},
		{Call{Kind: Allreduce, Op: 0, Of: Float64, Count: 3}.Word(), "Allreduce(Sum, 3 × float64)"},
		{Call{Kind: AllreduceFunc, Op: -1, Of: Struct, Count: 3}.Word(), "AllreduceFunc(3 bytes of structs)"},
		{Call{Kind: Reduce, Op: 9, Root: 1<<rootBits - 1, Of: Complex128}.Word(), "Reduce(BXor, root 1048575, 0 × complex128)"},
		{Call{Kind: Bcast, Root: 1, Of: Int, Count: most - 1}.Word(), "Bcast(root 1, 134217726 × int)"},
		{Call{Kind: Bcast, Root: 1, Of: Int, Count: 1 << 30}.Word(), "Bcast(root 1, 134217727 or more × int)"},
		{Call{Kind: Alltoallv, Of: Uint16, Count: 3}.Word(), "Alltoallv(uint16)"},
		{Call{Kind: GatherValue, Root: 2}.Word(), "GatherValue(root 2)"},
		{Call{Kind: Refused, Root: 2}.Word(), "a call with a bad argument"},
		{Word(kinds), fmt.Sprintf("Kind(%d)", int(kinds))},
		{Message(31), "Element(31)"},
		{Call{Kind: Scan, Op: 31, Of: 31, Count: 1}.Word(), "Scan(Op(31), 1 × Element(31))"},
	} {
		require.Equal(t, test.want, test.word.String())
	}
}

// Exactly the fields that calls of a kind have are compared.
func TestWhatFits(t *testing.T) {
	base := Call{Kind: Reduce, Op: 2, Root: 3, Of: Int32, Count: 4}
	fits := func(a, b Call) bool {
		v, w := a.Word(), b.Word()
		require.Equal(t, v.Fits(w), w.Fits(v))
		return v.Fits(w)
	}
	for k := Agree; k < kinds; k++ {
		a := base
		a.Kind = k
		f := forms[k]
		require.NotEmpty(t, f.name)
		for _, test := range []struct {
			change   func(*Call)
			compared bool
		}{
			{func(*Call) {}, false},
			{func(c *Call) { c.Op++ }, f.reducing},
			{func(c *Call) { c.Root++ }, f.rooted || f.spread},
			{func(c *Call) { c.Of = Float32 }, f.typed},
			{func(c *Call) { c.Count++ }, f.counted},
			{func(c *Call) { c.Of, c.Count = Bytes, 16 }, false},
			{func(c *Call) { c.Of, c.Count = Bytes, 4 }, f.typed && f.counted},
			{func(c *Call) { c.Of, c.Count = Bytes, most+1 }, f.typed && f.counted},
			{func(c *Call) { c.Kind = Agree + (k+1-Agree)%(kinds-Agree) }, true},
		} {
			b := a
			test.change(&b)
			require.Equal(t, !test.compared, fits(a, b), "%v and %v", a.Word(), b.Word())
		}
		require.False(t, a.Word().Fits(Word(Refused)))
		require.True(t, Word(Refused).Fits(a.Word()))
	}
	long, raw := Call{Kind: Bcast, Of: Int32, Count: most / 3}, Call{Kind: Bcast, Of: Bytes, Count: most}
	require.True(t, fits(long, raw), "at least so many bytes")
	base = Call{Kind: Bcast, Of: Struct, Count: 16} // bytes
	require.True(t, fits(base, Call{Kind: Bcast, Of: Bytes, Count: 16}))
	require.False(t, fits(base, Call{Kind: Bcast, Of: Bytes, Count: 4}))
}

// Messages fit if their elements look the same in memory, and bytes fit all.
func TestWhichMessagesFit(t *testing.T) {
	for e := Bytes; e <= Value; e++ {
		for f := Bytes; f <= Value; f++ {
			want := e == f || e == Bytes || f == Bytes || e.canonical() == f.canonical()
			require.Equal(t, want, Message(e).Fits(Message(f)), "%v and %v", e, f)
		}
	}
	require.True(t, Message(Int).Fits(Message(ElementOf(reflect.TypeFor[int]().Kind()))))
	require.False(t, Message(Int64).Fits(Message(Uint64)))
	require.False(t, Structs(8, 1).Fits(Structs(8, 2)))
	require.False(t, Structs(8, 1).Fits(Structs(16, 1)))
	require.True(t, Structs(1<<20, 1).Fits(Structs(1<<20, 1)))
	require.True(t, Structs(8, 1).Fits(0))
}

// A word can be printed, whatever another process has written.
func FuzzWord(f *testing.F) {
	f.Add(uint64(0), ^uint64(0))
	f.Fuzz(func(t *testing.T, v, w uint64) {
		require.NotEmpty(t, Word(v).String())
		if Word(v).Kind() != Refused && Word(w).Kind() != Refused {
			require.Equal(t, Word(v).Fits(Word(w)), Word(w).Fits(Word(v)))
		}
	})
}
