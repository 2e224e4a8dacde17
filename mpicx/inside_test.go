package mpicx

import (
	"context"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/internal/machine"
	"github.com/mpicx/go-mpicx/internal/transport"
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

// A rank that has been declared dead is told so though its communicators have no other rank, so
// that its operations need no message.
func TestFencedAlone(t *testing.T) {
	if machine.Processes() > 0 {
		t.Skip("processes need their job for other tests")
	}
	errs := make([]error, 2)
	_ = Run(context.Background(), func(ctx context.Context, world *Comm) error {
		alone := world.Split(world.Rank(), 0).MustGet(ctx)
		alone.Barrier().MustWait(ctx)
		world.proc.giveUp(transport.ErrFenced)
		errs[world.Rank()] = alone.Barrier().Wait(ctx)
		return nil
	}, WithRanks(2))
	for rank, err := range errs {
		assert.ErrorIs(t, err, ErrFenced, "rank %d", rank)
	}
}

// Nor does an older error, which Shrink would have given again, keep it from a rank that has been
// declared dead.
func TestFencedShrink(t *testing.T) {
	if machine.Processes() > 0 {
		t.Skip("processes need their job for other tests")
	}
	first, then := make([]error, 2), make([]error, 2)
	_ = Run(context.Background(), func(ctx context.Context, world *Comm) error {
		r := world.Rank()
		if r == 2 {
			world.t.Die()
			return nil
		}
		first[r] = world.Barrier().Wait(ctx)
		world.proc.giveUp(transport.ErrFenced)
		_, then[r] = world.Shrink().Get(ctx)
		return nil
	}, WithRanks(3), hook.Backend[Option](hook.ULFM))
	for r := range first {
		assert.True(t, is[*CommCorruptedError](first[r]), "rank %d: %v", r, first[r])
		assert.NotErrorIs(t, first[r], ErrFenced, "rank %d", r)
		assert.ErrorIs(t, then[r], ErrFenced, "rank %d", r)
	}
}

// A yield that took long has the next ones left out, for longer each time; quick ones
// have that forgotten.
func TestYieldsAreLeftOutWhereTheyTakeLong(t *testing.T) {
	var y yielder
	leftOut := func() (n int) {
		for y.left.Load() > 1 {
			y.yield()
			n++
		}
		return n
	}
	require.Zero(t, leftOut())
	for _, want := range []int{256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 65536} {
		y.took(slowYield + 1)
		require.Equal(t, want-1, leftOut(), "and one that is timed follows")
		y.left.Add(-1)
		require.Zero(t, y.left.Load()%timedYields)
	}
	for range 9 {
		y.took(slowYield)
	}
	require.Zero(t, leftOut())
	y.took(slowYield + 1)
	require.Equal(t, 256-1, leftOut())
}
