package local

import (
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
)

var (
	barrier = signature.Call{Kind: signature.Barrier}.Word()
	refused = signature.Call{Kind: signature.Refused, Root: 1}.Word()
	reduce  = signature.Call{Kind: signature.Reduce, Root: 0, Of: signature.Int, Count: 1}.Word()
)

// waitIn makes a call at a rank, which then waits for a message of the call from a peer, or for
// all.
func waitIn(c *Comm, w signature.Word, peer int) *request {
	tag := transport.CollectiveTag(c.Call(c.Epoch(), w))
	if peer == all {
		tag, peer = transport.NoTag, c.rank
	}
	return start(c, c.Irecv, transport.Request{Peer: peer, Tag: tag, Signature: w})
}

// block makes all ranks begin to wait.
func block(ranks []*Comm) {
	for _, c := range ranks {
		c.Look()
	}
}

// Of three ranks, exactly those are halted that wait for a rank that has made another call in
// the same place. No timer is left afterwards.
func TestComparison(t *testing.T) {
	for _, test := range []struct {
		name string
		do   func(t *testing.T, ranks []*Comm)
		want []int // the ranks that are halted
	}{
		{"each waits for the other", func(_ *testing.T, ranks []*Comm) {
			waitIn(ranks[0], barrier, 1)
			waitIn(ranks[1], reduce, 0)
		}, []int{0, 1}},
		{"round a ring", func(_ *testing.T, ranks []*Comm) {
			waitIn(ranks[0], barrier, 1)
			waitIn(ranks[1], barrier, 2)
			waitIn(ranks[2], reduce, 0)
		}, []int{1, 2}},
		{"the peer waits for nothing", func(_ *testing.T, ranks []*Comm) {
			waitIn(ranks[0], barrier, 1)
			ranks[1].Call(0, reduce)
		}, []int{0}},
		{"one of several peers", func(_ *testing.T, ranks []*Comm) {
			tag := transport.CollectiveTag(ranks[0].Call(0, barrier))
			for peer := 1; peer < 3; peer++ {
				start(ranks[0], ranks[0].Irecv, transport.Request{Peer: peer, Tag: tag, Signature: barrier})
			}
			ranks[1].Call(0, barrier)
			ranks[2].Call(0, reduce)
		}, []int{0}},
		{"in an earlier call", func(_ *testing.T, ranks []*Comm) {
			waitIn(ranks[0], barrier, 1)
			ranks[0].Call(0, barrier)
			for _, w := range []signature.Word{reduce, barrier, barrier} {
				ranks[1].Call(0, w)
			}
		}, []int{0}},
		{"an agreement of all", func(_ *testing.T, ranks []*Comm) {
			waitIn(ranks[0], barrier, all)
			waitIn(ranks[1], barrier, all)
			waitIn(ranks[2], reduce, 0)
		}, []int{0, 1, 2}},
		{"the peer comes later", func(_ *testing.T, ranks []*Comm) {
			waitIn(ranks[0], barrier, 1)
			block(ranks)
			time.Sleep(time.Hour)
			ranks[1].Call(0, reduce)
		}, []int{0}},
		{"the wait comes later", func(_ *testing.T, ranks []*Comm) {
			tag := transport.CollectiveTag(ranks[0].Call(0, barrier))
			ranks[1].Call(0, reduce)
			block(ranks)
			time.Sleep(time.Hour)
			start(ranks[0], ranks[0].Irecv, transport.Request{Peer: 1, Tag: tag, Signature: barrier})
		}, []int{0}},
		{"the same call", func(_ *testing.T, ranks []*Comm) {
			waitIn(ranks[0], barrier, 1)
			waitIn(ranks[1], barrier, 0)
		}, nil},
		{"a bad call, directly or not", func(_ *testing.T, ranks []*Comm) {
			waitIn(ranks[0], barrier, 1)
			waitIn(ranks[1], barrier, 2)
			ranks[2].Call(0, refused)
		}, []int{0, 1}},
		{"to send to a bad call", func(_ *testing.T, ranks []*Comm) {
			tag := transport.CollectiveTag(ranks[0].Call(0, barrier))
			start(ranks[0], ranks[0].Isend, transport.Request{Buf: make([]byte, EagerLimit+1), Peer: 1, Tag: tag, Signature: barrier})
			ranks[1].Call(0, refused)
		}, []int{0}},
		{"the peer has not come", func(_ *testing.T, ranks []*Comm) {
			ranks[0].Call(0, barrier)
			waitIn(ranks[0], barrier, 1)
			ranks[1].Call(0, barrier)
		}, nil},
		{"the peer's call is forgotten", func(_ *testing.T, ranks []*Comm) {
			waitIn(ranks[0], barrier, 1)
			for range 9 {
				ranks[1].Call(0, reduce)
			}
		}, nil},
		{"the peer is in the next epoch", func(_ *testing.T, ranks []*Comm) {
			waitIn(ranks[0], barrier, 1)
			ranks[1].Advance(0, errors.New("an error"))
			ranks[1].Call(ranks[1].Epoch(), reduce)
		}, nil},
		{"the peer has been revoked", func(_ *testing.T, ranks []*Comm) {
			waitIn(ranks[0], barrier, 1)
			ranks[1].Revoke(errors.New("an error"))
			ranks[1].Call(0, reduce)
		}, nil},
		{"the peer has been halted", func(_ *testing.T, ranks []*Comm) {
			waitIn(ranks[0], barrier, 1)
			ranks[1].halt(&transport.MismatchError{})
			ranks[1].Call(0, reduce)
		}, []int{0, 1}},
		{"a member has died", func(_ *testing.T, ranks []*Comm) {
			waitIn(ranks[0], barrier, all)
			ranks[2].Die()
			ranks[1].Call(0, reduce)
		}, nil},
		{"from point to point", func(_ *testing.T, ranks []*Comm) {
			ranks[0].Call(0, barrier)
			recv(ranks[0], 1, nil)
			ranks[1].Call(0, reduce)
		}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ranks := NewMortal(3)
				test.do(t, ranks)
				block(ranks)
				time.Sleep(comparePeriod)
				synctest.Wait()
				var halted []int
				for i, c := range ranks {
					if c.Mismatch() != nil {
						halted = append(halted, i)
					}
				}
				require.Equal(t, test.want, halted)
				require.False(t, ranks[0].comm.compare.set)
				require.False(t, ranks[0].comm.due.Load())
			})
		})
	}
}

// Calls are compared when a program blocks or ends. Comparisons take at most a hundredth of the time,
// no matter how many ranks there are; but if the process was stopped in one, the next is not late. A
// halted rank's request ends with both calls, and with nothing locked.
func TestWhenCallsAreCompared(t *testing.T) {
	blocks := func(ranks []*Comm) { ranks[1].Look() }
	for _, test := range []struct {
		name  string
		took  [2]time.Duration // by the last comparisons
		do    func(ranks []*Comm)
		after time.Duration
		want  bool
	}{
		{"calls", [2]time.Duration{}, func([]*Comm) {}, comparePeriod, false},
		{"and one blocks", [2]time.Duration{}, blocks, comparePeriod, true},
		{"and one ends", [2]time.Duration{}, func(ranks []*Comm) { ranks[1].Leave(false) }, comparePeriod, true},
		{"too early for the next", [2]time.Duration{time.Second, time.Second}, blocks, 99 * time.Second, false},
		{"in time for the next", [2]time.Duration{time.Second, time.Second}, blocks, 100 * time.Second, true},
		{"stopped in the last", [2]time.Duration{0, time.Hour}, blocks, comparePeriod, true},
		{"stopped in the last but one", [2]time.Duration{time.Hour, 0}, blocks, comparePeriod, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ranks := New(2)
				ranks[0].comm.compare.took = test.took
				n := waitIn(ranks[0], barrier, 1)
				ranks[1].Call(0, reduce)
				test.do(ranks)
				time.Sleep(test.after)
				synctest.Wait()
				require.Equal(t, test.want, n.ends == 1)
				if test.want {
					require.False(t, n.locked)
					require.Equal(t, &transport.MismatchError{Number: 1, Own: barrier, Source: 1, Theirs: reduce}, n.Err)
				}
			})
		})
	}
}

// After Stop nothing is compared, and no timer is set.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ranks := New(2)
		n := waitIn(ranks[0], barrier, 1)
		block(ranks)
		ranks[0].Stop()
		ranks[1].Call(0, reduce)
		block(ranks)
		time.Sleep(time.Hour)
		require.Zero(t, n.ends)
		require.False(t, ranks[0].comm.due.Load())
		ranks[1].Stop()
	})
}

// What changes during a comparison is compared next, if a program blocks meanwhile.
func TestChangesDuringAComparison(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ranks := New(3)
		n := waitIn(ranks[0], barrier, 1)
		last := &ranks[2].mu
		last.Lock() // the comparison gets no further
		ranks[0].Look()
		time.Sleep(comparePeriod)
		for range 10_000 {
			runtime.Gosched()
		}
		ranks[1].Call(0, reduce)
		ranks[1].Look()
		last.Unlock()
		time.Sleep(comparePeriod)
		synctest.Wait()
		require.Equal(t, 1, n.ends)
	})
}
