package mpicx

import (
	"context"
	"errors"
	"fmt"
	"math"
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
	"github.com/mpicx/go-mpicx/internal/waiting"
	"github.com/mpicx/go-mpicx/internal/wire"
)

// FuzzDecodeFailure: a report of another rank can be any bytes.
func FuzzDecodeFailure(f *testing.F) {
	at := time.Unix(12, 34)
	f.Add(Failure{}.encode())
	f.Add(Failure{Code: -666, Message: "diverged", Origin: "main.solve solve.go:12", Time: at}.encode())
	f.Add(Failure{Code: math.MaxInt, Message: strings.Repeat("ö", MaxMessage/2), Origin: strings.Repeat("x", 5000), Time: at}.encode())
	f.Add(Failure{Sentinels: "diverged\nother", Time: at}.encode())
	f.Add(newFailure(&picky{7}, 0).encode())
	f.Add([]byte{})
	f.Add([]byte{2, 2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		got := decodeFailure(errchan.Report{Rank: 3, Data: data})
		require.Equal(t, 3, got.Rank)
		require.True(t, utf8.ValidString(got.Message))
		require.LessOrEqual(t, len(got.Message), MaxMessage)
		require.LessOrEqual(t, len(got.Origin), len(data))
		_, _ = got.String(), got.encode()
		errors.As(&PropagatedError{Failures: []Failure{got}}, new(*picky))
		if !got.Time.IsZero() && utf8.ValidString(got.Origin) && len(got.Origin) <= MaxMessage { // what encode makes
			require.Equal(t, got, decodeFailure(errchan.Report{Rank: 3, Data: got.encode()}))
		}
	})
}

// picky is an error whose gob is one byte. A zero makes its GobDecode panic.
type picky struct{ b byte }

func init() { registerType[*picky]() } // RegisterErrorType refuses the types of this package

func (p *picky) Error() string              { return "picky" }
func (p *picky) GobEncode() ([]byte, error) { return []byte{p.b}, nil }
func (p *picky) GobDecode(b []byte) error {
	if p.b = b[0]; p.b == 0 {
		panic("garbage")
	}
	return nil
}

// The text says what a rank has not registered. Garbage, and what was not sent, is no error value.
func TestWhatARankHasNotRegistered(t *testing.T) {
	pair := func(name, value string) string {
		return string(wire.AppendBytes(wire.AppendBytes(nil, name), value))
	}
	name, seven := "*"+ownPackage+"picky", newFailure(&picky{7}, 0).types
	for _, test := range []struct {
		f    Failure
		text string // after the rank
		as   bool
	}{
		{Failure{types: seven}, "", true},
		{Failure{Sentinels: "EOF\nnobody's"}, ` (this rank has not registered "nobody's")`, false},
		{Failure{types: pair("*main.E", "x") + seven}, ` (this rank has not registered "*main.E")`, true},
		{Failure{types: pair("*main.E: too long", "") + seven}, "", true},
		{Failure{types: pair(name, "garbage")}, "", false},
		{Failure{types: newFailure(&picky{0}, 0).types}, "", false},
		{Failure{types: "\xff\xff" + seven}, "", false},
	} {
		err := error(&PropagatedError{Failures: []Failure{test.f}})
		require.EqualError(t, err, propagatedFrom+"rank 0"+test.text)
		got, found := errors.AsType[*picky](err)
		require.Equal(t, test.as, found && got.b == 7, "%+v", err)
		require.Equal(t, strings.Contains(test.f.types, "too long"), strings.Contains(fmt.Sprintf("%+v", err), "not sent: "))
	}
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
	require.LessOrEqual(t, len(Failure{Message: cut(long, MaxMessage), Origin: long}.encode()), errchan.MaxData)
}

// A rank that has been declared dead is told so though its communicators have no other rank, so
// that its operations need no message. Nor does an older error keep it from the rank, which Shrink
// would have given again.
func TestFenced(t *testing.T) {
	if machine.Processes() > 0 {
		t.Skip("processes need their job for other tests")
	}
	_ = Run(t.Context(), func(ctx context.Context, world *Comm) error {
		alone := world.Split(world.Rank(), 0).MustGet(ctx)
		alone.Barrier().MustWait(ctx)
		world.proc.giveUp(transport.ErrFenced)
		assert.ErrorIs(t, alone.Barrier().Wait(ctx), ErrFenced, "rank %d", world.Rank())
		return nil
	}, WithRanks(2))
	_ = Run(t.Context(), func(ctx context.Context, world *Comm) error {
		if world.Rank() == 2 {
			world.t.Die()
			return nil
		}
		err := world.Barrier().Wait(ctx)
		assert.True(t, hasType[*CommCorruptedError](err), "rank %d: %v", world.Rank(), err)
		assert.NotErrorIs(t, err, ErrFenced, "rank %d", world.Rank())
		world.proc.giveUp(transport.ErrFenced)
		assert.ErrorIs(t, world.Shrink().Wait(ctx), ErrFenced, "rank %d", world.Rank())
		return nil
	}, WithRanks(3), hook.Backend[Option](hook.ULFM))
}

// A yield that took long has the next ones left out, for longer each time; quick ones
// have that forgotten.
func TestYieldsAreLeftOutWhereTheyTakeLong(t *testing.T) {
	var y yielder
	leftOut := func() (n int) {
		for y.toLeaveOut.Load() > 1 {
			y.Yield()
			n++
		}
		return n
	}
	require.Zero(t, leftOut())
	for _, want := range []int{256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 65536} {
		y.took(slowYield + 1)
		require.Equal(t, want-1, leftOut(), "and one that is timed follows")
		y.toLeaveOut.Add(-1)
		require.Zero(t, y.toLeaveOut.Load()%timedYields)
	}
	for range 9 {
		y.took(slowYield)
	}
	require.Zero(t, leftOut())
	y.took(slowYield + 1)
	require.Equal(t, 256-1, leftOut())
}

// A receive lets others run first if the one before was waited for at once, and its message came.
func TestPrompt(t *testing.T) {
	const posts, begins, comes, late = "posts", "begins", "the message comes", "it does not come"
	for _, test := range []struct {
		happens []string
		likely  bool
	}{
		{[]string{posts, comes}, true},
		{[]string{posts, late}, false},
		{[]string{posts, begins, comes}, false},
		{[]string{posts, comes, posts, begins, comes}, false},
		{[]string{posts, comes, posts, late}, false},
		{[]string{posts, comes, begins, late, begins}, true}, // nothing was posted since
	} {
		k := &keeper{comm: &comm{proc: new(proc)}}
		p, cell := &k.proc.prompt, new(waiting.Cell)
		for _, what := range test.happens {
			switch what {
			case posts:
				cell = new(waiting.Cell)
				p.begins()
				p.posted(cell)
			case begins:
				p.begins()
			case comes:
				cell.Complete()
				k.Yield(cell)
			case late:
				k.Yield(cell)
			}
		}
		require.Equal(t, test.likely, p.likely.Load(), "%v", test.happens)
	}
}
