package collective

import (
	"encoding/binary"
	"fmt"
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

// run carries out an algorithm at n ranks, at the same time, and returns how it
// ended at each; it may be called several times with different tags.
func run(comms []*local.Comm, tag int, algorithm func(rank int) Algorithm) []error {
	errs := make([]error, len(comms))
	var wg sync.WaitGroup
	for r, c := range comms {
		wg.Go(func() {
			done := make(ended, 1)
			new(Exchange).Start(c, c.Epoch(), tag, algorithm(r), done)
			errs[r] = <-done
		})
	}
	wg.Wait()
	return errs
}

// concat is as far from commutative as can be: values are pairs of the first and
// last rank that is in them, and only neighbours may be combined.
func concat(t *testing.T) Op {
	return func(dst, left, right []byte) {
		for i := 0; i < len(dst); i += 4 {
			if binary.LittleEndian.Uint16(left[i+2:])+1 != binary.LittleEndian.Uint16(right[i:]) {
				t.Errorf("combines %v and %v", left[i:i+4], right[i:i+4])
			}
			first, last := [2]byte(left[i:]), [2]byte(right[i+2:])
			copy(dst[i:], first[:])
			copy(dst[i+2:], last[:])
		}
	}
}

func interval(length, first, last int) []byte {
	var b []byte
	for range length {
		b = binary.LittleEndian.AppendUint16(b, uint16(first))
		b = binary.LittleEndian.AppendUint16(b, uint16(last))
	}
	return b
}

// Every reduction combines the ranks in their order, whatever their number: also
// AllreduceDoubling, which the local transport does not choose.
func TestReductions(t *testing.T) {
	for n := 1; n <= 40; n++ {
		for _, length := range []int{0, 1, 300, 2000} {
			synctest.Test(t, func(t *testing.T) {
				comms, tag := local.New(n), -2
				op := concat(t)
				tmp := func() []byte { return make([]byte, 4*length) }
				check := func(what string, errs []error, got [][]byte, want func(r int) []byte) {
					for r := range n {
						require.NoError(t, errs[r])
						if w := want(r); w != nil {
							require.Equal(t, w, got[r], "%s, length %d, rank %d of %d", what, length, r, n)
						}
					}
					tag--
				}
				all := func(int) []byte { return interval(length, 0, n-1) }
				acc := make([][]byte, n)
				fresh := func(r int) []byte {
					acc[r] = interval(length, r, r)
					return acc[r]
				}
				errs := run(comms, tag, func(r int) Algorithm { return &AllreduceDoubling{Acc: fresh(r), Tmp: tmp(), Op: op} })
				check("AllreduceDoubling", errs, acc, all)
				errs = run(comms, tag, func(r int) Algorithm { return &AllreduceTree{Reduce: Reduce{Acc: fresh(r), Tmp: tmp(), Op: op}} })
				check("AllreduceTree", errs, acc, all)
				for root := 0; root < n; root += 1 + n/5 {
					errs = run(comms, tag, func(r int) Algorithm { return &Reduce{Acc: fresh(r), Tmp: tmp(), Op: op, Root: root} })
					check("Reduce", errs, acc, func(r int) []byte {
						if r != root {
							return nil
						}
						return all(r)
					})
				}
				errs = run(comms, tag, func(r int) Algorithm { return &Scan{Acc: fresh(r), Tmp: tmp(), Op: op} })
				check("Scan", errs, acc, func(r int) []byte { return interval(length, 0, r) })
				result := make([][]byte, n)
				errs = run(comms, tag, func(r int) Algorithm {
					result[r] = interval(length, 777, 777)
					return &Scan{Acc: fresh(r), Tmp: tmp(), Op: op, Exclusive: true, Result: result[r]}
				})
				check("Exscan", errs, result, func(r int) []byte {
					if r == 0 {
						return interval(length, 777, 777) // left alone
					}
					return interval(length, 0, r-1)
				})
			})
		}
	}
}

// AllreduceDoubling over no bytes is a barrier: nobody is done before all have
// begun.
func TestDoublingIsABarrier(t *testing.T) {
	for n := 2; n <= 20; n++ {
		for late := range n {
			synctest.Test(t, func(t *testing.T) {
				comms := local.New(n)
				done := make(ended, n)
				start := func(r int) {
					new(Exchange).Start(comms[r], 0, -2, &AllreduceDoubling{Op: func(_, _, _ []byte) {}}, done)
				}
				for r := range n {
					if r != late {
						start(r)
					}
				}
				synctest.Wait()
				// Those that no message can have told of all the others.
				require.Empty(t, done, "%d ranks, %d is late", n, late)
				start(late)
				for range n {
					require.NoError(t, <-done)
				}
			})
		}
	}
}

// When the epoch ends, so does every operation, at every step.
func TestEpochEnds(t *testing.T) {
	const n = 7
	for late := range n {
		synctest.Test(t, func(t *testing.T) {
			comms := local.New(n)
			cause := fmt.Errorf("an error of rank %d", late)
			var dones []ended
			for r := range n {
				if r == late {
					continue
				}
				for tag, a := range []Algorithm{
					Barrier{}, &AllreduceDoubling{Acc: make([]byte, 8), Tmp: make([]byte, 8), Op: func(_, _, _ []byte) {}},
					&AllgatherAny{GatherAny: GatherAny{Send: []byte("x")}},
					&Linear{Send: make([][]byte, n), Recv: [][]byte{{1}, {1}, {1}, {1}, {1}, {1}, {1}}},
				} {
					done := make(ended, 1)
					dones = append(dones, done)
					new(Exchange).Start(comms[r], 0, -2-tag, a, done)
				}
			}
			for _, c := range comms {
				c.Advance(0, cause)
			}
			for _, done := range dones {
				if err := <-done; err != nil {
					require.Equal(t, cause, err)
				}
			}
			require.Empty(t, transport.Pending(comms[0]))
		})
	}
}

// A message of another length ends the operation, at the rank that finds out, and
// takes its other messages back.
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

// A panic in an Op ends the operation with itself.
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
