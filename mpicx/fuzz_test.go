package mpicx

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/errchan"
)

// FuzzDecodeFailure: a report of another rank can be any bytes.
func FuzzDecodeFailure(f *testing.F) {
	at := time.Unix(12, 34)
	f.Add(Failure{}.encode())
	f.Add(Failure{Code: -666, Message: "diverged", Origin: "main.solve solve.go:12", Time: at}.encode())
	f.Add(Failure{Code: math.MaxInt, Message: strings.Repeat("ö", MaxMessage/2), Origin: strings.Repeat("x", 5000), Time: at}.encode())
	f.Add([]byte{})
	f.Add([]byte{2, 2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		got := decodeFailure(errchan.Report{Rank: 3, Data: data})
		require.Equal(t, 3, got.Rank)
		require.True(t, utf8.ValidString(got.Message))
		require.LessOrEqual(t, len(got.Message), MaxMessage)
		require.LessOrEqual(t, len(got.Origin), len(data))
		_, _ = got.String(), got.encode()
		if !got.Time.IsZero() && utf8.ValidString(got.Origin) && len(got.Origin) <= MaxMessage { // what encode makes
			require.Equal(t, got, decodeFailure(errchan.Report{Rank: 3, Data: got.encode()}))
		}
	})
}

type fuzzed struct {
	A int
	B []string
	C map[string]float64
	D *fuzzed
}

// FuzzDecodeValue: so can a value. Whatever comes, there is a value or an error.
func FuzzDecodeValue(f *testing.F) {
	for _, v := range []fuzzed{{}, {1, []string{"a", "b"}, map[string]float64{"x": 1}, &fuzzed{A: 2}}} {
		b, err := encodeValue("test", v)
		require.NoError(f, err)
		f.Add(b)
	}
	f.Add([]byte{})
	f.Add([]byte("\x00\xff nonsense"))
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := decodeValue[fuzzed]("test", data)
		if err != nil {
			var e *MPIError
			require.ErrorAs(t, err, &e)
			require.Equal(t, ClassType, e.Class)
			return
		}
		b, err := encodeValue("test", v)
		require.NoError(t, err)
		again, err := decodeValue[fuzzed]("test", b)
		require.NoError(t, err)
		if !hasNaN(v) {
			require.True(t, reflect.DeepEqual(v, again), "%v %v", v, again)
		}
		_, _ = decodeValue[int]("test", data)
		_, _ = decodeValue[any]("test", data)
		_, _ = decodeValue[panicky]("test", data)
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
	b, err := encodeValue("test", panicky{})
	require.NoError(t, err)
	_, err = decodeValue[panicky]("RecvValue", b)
	require.ErrorContains(t, err, "decoder gone mad")
	_, err = encodeValue("SendValue", func() {})
	require.ErrorContains(t, err, "func()")
}

func TestFailureText(t *testing.T) {
	long := strings.Repeat("ä", MaxMessage)
	f := decodeFailure(errchan.Report{Data: newFailure(&codeError{7}, 0).encode()})
	require.Equal(t, 7, f.Code)
	require.LessOrEqual(t, len(cut(long, MaxMessage)), MaxMessage)
	require.True(t, utf8.ValidString(cut(long, MaxMessage)))
	require.True(t, strings.HasSuffix(cut(long, MaxMessage), "…"))
	require.Equal(t, "a\uFFFDb", cut("a\xffb", 99))
	require.Equal(t, "its error channel got a message that makes no sense", decodeFailure(errchan.Report{}).Message)
	require.LessOrEqual(t, len(Failure{Message: cut(long, MaxMessage), Origin: long}.encode()), 4096, "errchan.MaxData")
}
