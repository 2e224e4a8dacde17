package collective

import (
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/local"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type ended chan error

func (e ended) Ended(err error) { e <- err }

// run runs an algorithm at n ranks at the same time, and returns how it ended at each. It may
// be called several times with different tags.
func run(comms []*local.Comm, tag int, algorithm func(rank int) Algorithm) []error {
	errs := make([]error, len(comms))
	var wg sync.WaitGroup
	for r, c := range comms {
		wg.Go(func() {
			done := make(ended, 1)
			begin(new(Exchange), c, c.Epoch(), tag, algorithm(r), done)
			errs[r] = <-done
		})
	}
	wg.Wait()
	return errs
}

// begin begins an operation on the board or, with this tag, by messages.
func begin(x *Exchange, c transport.Comm, e transport.Epoch, tag int, a Algorithm, done ended) {
	if call, ok := a.(*Call); !ok || call.meeting.Carrier == nil {
		x.Start(c, e, tag, a, done)
	} else if over, err := x.Call(c, e, a, done); over {
		done.Ended(err)
	}
}

// A message of another length ends the operation at the rank that receives it, and cancels this
// rank's other messages.
func TestLengthError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		comms := local.New(2)
		errs := run(comms[:1], -2, func(int) Algorithm {
			sent := make(ended, 1)
			new(Exchange).Start(comms[1], 0, -2, &Linear{Send: [][]byte{{1, 2}, nil}}, sent)
			require.NoError(t, <-sent)
			return &Linear{Recv: [][]byte{nil, {0, 0, 0}}, Send: [][]byte{nil, make([]byte, 10000)}}
		})
		require.Equal(t, &LengthError{Source: 1, Got: 2, Want: 3}, errs[0])
		require.ErrorContains(t, errs[0], "2 bytes from rank 1 where 3 were expected")
		require.Empty(t, transport.Pending(comms[0]))
	})
}

// A panic in an Op ends the operation with a Panicked.
func TestPanicInOp(t *testing.T) {
	errs := run(local.New(1), -2, func(int) Algorithm { return panicking{} })
	var p *future.Panicked
	require.ErrorAs(t, errs[0], &p)
	require.Equal(t, "no", p.Value)
}

type panicking struct{}

func (panicking) Step(int, *Exchange) bool { panic("no") }

// FuzzSplitParts: parts come from another rank, so they can be anything.
func FuzzSplitParts(f *testing.F) {
	f.Add([]byte{0, 0}, 2)
	f.Add([]byte{1, 'a', 2, 'b', 'c'}, 2)
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, 1)
	f.Add([]byte{}, 1<<30)
	f.Fuzz(func(t *testing.T, all []byte, n int) {
		if n < 0 {
			return // no communicator has that many ranks
		}
		parts, err := SplitParts(all, n)
		if err != nil {
			require.Nil(t, parts)
			return
		}
		require.Len(t, parts, n)
		total := 0
		for _, p := range parts {
			total += len(p)
			require.Equal(t, len(p), cap(p))
		}
		require.LessOrEqual(t, total+n, len(all))
	})
}

// All ranks of a process share the same bytes.
func TestAllgatherShared(t *testing.T) {
	for n := 1; n <= 20; n++ {
		all := make([]*AllgatherShared, n)
		var want []byte
		for r := range all {
			all[r] = &AllgatherShared{Send: []byte{byte(r), 7}}
			want = append(want, byte(r), 7)
		}
		for _, err := range run(local.New(n), -2, func(r int) Algorithm { return all[r] }) {
			require.NoError(t, err)
		}
		for _, a := range all {
			require.Equal(t, want, a.All)
			require.Same(t, &all[0].All[0], &a.All[0])
		}
	}
}

// A message of another operation is not taken for one of AllgatherShared.
func TestAllgatherSharedMeetsAnother(t *testing.T) {
	errs := run(local.New(2), -2, func(r int) Algorithm {
		if r == 0 {
			return &BcastAny{Buf: []byte("xyz")}
		}
		return &AllgatherShared{Send: []byte("x")}
	})
	require.NoError(t, errs[0])
	require.Equal(t, &LengthError{0, 3, 2}, errs[1])
}
