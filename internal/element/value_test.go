package element_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/element"
)

type fuzzed struct {
	A int
	B []string
	C map[string]float64
	D *fuzzed
}

// The bytes of a value can be anything. Whatever comes, there is a value or an error.
func FuzzDecode(f *testing.F) {
	for _, v := range []fuzzed{{}, {1, []string{"a", "b"}, map[string]float64{"x": 1}, &fuzzed{A: 2}}} {
		b, err := element.Encode(v)
		require.NoError(f, err)
		f.Add(b)
	}
	f.Add([]byte{})
	f.Add([]byte("\x00\xff nonsense"))
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := element.Decode[fuzzed](data)
		if err != nil {
			var e *element.Error
			require.ErrorAs(t, err, &e)
			return
		}
		b, err := element.Encode(v)
		require.NoError(t, err)
		again, err := element.Decode[fuzzed](b)
		require.NoError(t, err)
		if !hasNaN(v) {
			require.True(t, reflect.DeepEqual(v, again), "%v %v", v, again)
		}
		_, _ = element.Decode[int](data)
		_, _ = element.Decode[any](data)
		_, _ = element.Decode[panicky](data)
	})
}

func hasNaN(v fuzzed) bool {
	for _, x := range v.C {
		if x != x {
			return true
		}
	}
	return v.D != nil && hasNaN(*v.D)
}

// panicky decodes itself, badly.
type panicky struct{}

func (panicky) GobEncode() ([]byte, error) { return []byte{1}, nil }
func (*panicky) GobDecode([]byte) error    { panic("decoder gone mad") }

func TestDecodePanics(t *testing.T) {
	b, err := element.Encode(panicky{})
	require.NoError(t, err)
	_, err = element.Decode[panicky](b)
	require.EqualError(t, err, fmt.Sprintf("message of %d bytes is no element_test.panicky: panic: decoder gone mad",
		len(b)))
	_, err = element.Encode(func() {})
	require.ErrorContains(t, err, "value of type func(): ")
}
