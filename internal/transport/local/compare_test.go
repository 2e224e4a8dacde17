package local

import (
	"errors"
	"runtime"
	"slices"
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

// A step is something that ranks do, one after another.
type step = func(ranks []*Comm)

func calls(rank int, words ...signature.Word) step {
	return func(ranks []*Comm) {
		for _, w := range words {
			ranks[rank].Call(ranks[rank].Epoch(), w)
		}
	}
}

func waits(rank int, w signature.Word, peer int) step {
	return func(ranks []*Comm) { waitIn(ranks[rank], w, peer) }
}

// recvs has a rank wait for a message of its first call, a barrier; sends has it send one.
func recvs(rank, peer int) step {
	return func(ranks []*Comm) {
		start(ranks[rank], ranks[rank].Irecv, transport.Request{Peer: peer, Tag: transport.CollectiveTag(1), Signature: barrier})
	}
}

func sends(rank, peer int) step {
	return func(ranks []*Comm) {
		start(ranks[rank], ranks[rank].Isend, transport.Request{Buf: make([]byte, EagerLimit+1), Peer: peer, Tag: transport.CollectiveTag(1), Signature: barrier})
	}
}

// later is what happens when the program has blocked for long.
func later(ranks []*Comm) {
	block(ranks)
	time.Sleep(time.Hour)
}

// Of three ranks, exactly those are halted that wait for a rank that has made another call in
// the same place. No timer is left afterwards.
func TestComparison(t *testing.T) {
	err := errors.New("an error")
	for _, test := range []struct {
		name string
		do   []step
		want []int // the ranks that are halted
	}{
		{"each waits for the other", []step{waits(0, barrier, 1), waits(1, reduce, 0)}, []int{0, 1}},
		{"round a ring", []step{waits(0, barrier, 1), waits(1, barrier, 2), waits(2, reduce, 0)}, []int{1, 2}},
		{"the peer waits for nothing", []step{waits(0, barrier, 1), calls(1, reduce)}, []int{0}},
		{"one of several peers", []step{waits(0, barrier, 1), recvs(0, 2), calls(1, barrier), calls(2, reduce)}, []int{0}},
		{"in an earlier call", []step{waits(0, barrier, 1), calls(0, barrier), calls(1, reduce, barrier, barrier)}, []int{0}},
		{"an agreement of all", []step{waits(0, barrier, all), waits(1, barrier, all), waits(2, reduce, 0)}, []int{0, 1, 2}},
		{"the peer comes later", []step{waits(0, barrier, 1), later, calls(1, reduce)}, []int{0}},
		{"the wait comes later", []step{calls(0, barrier), calls(1, reduce), later, recvs(0, 1)}, []int{0}},
		{"the same call", []step{waits(0, barrier, 1), waits(1, barrier, 0)}, nil},
		{"a bad call, directly or not", []step{waits(0, barrier, 1), waits(1, barrier, 2), calls(2, refused)}, []int{0, 1}},
		{"to send to a bad call", []step{calls(0, barrier), sends(0, 1), calls(1, refused)}, []int{0}},
		{"the peer has not come", []step{calls(0, barrier), waits(0, barrier, 1), calls(1, barrier)}, nil},
		{"the peer's call is forgotten", []step{waits(0, barrier, 1), calls(1, slices.Repeat([]signature.Word{reduce}, 9)...)}, nil},
		{"the peer is in the next epoch", []step{waits(0, barrier, 1), func(ranks []*Comm) { ranks[1].Advance(0, err) }, calls(1, reduce)}, nil},
		{"the peer has been revoked", []step{waits(0, barrier, 1), func(ranks []*Comm) { ranks[1].Revoke(err) }, calls(1, reduce)}, nil},
		{"the peer has been halted", []step{waits(0, barrier, 1), func(ranks []*Comm) { ranks[1].halt(&transport.MismatchError{}) }, calls(1, reduce)}, []int{0, 1}},
		{"a member has died", []step{waits(0, barrier, all), func(ranks []*Comm) { ranks[2].Die() }, calls(1, reduce)}, nil},
		{"from point to point", []step{calls(0, barrier), func(ranks []*Comm) { recv(ranks[0], 1, nil) }, calls(1, reduce)}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ranks := NewMortal(3)
				for _, do := range append(test.do, block) {
					do(ranks)
				}
				time.Sleep(comparePeriod)
				synctest.Wait()
				for _, c := range ranks {
					require.Equal(t, slices.Contains(test.want, c.rank), c.Mismatch() != nil, "rank %d", c.rank)
				}
				require.False(t, ranks[0].comm.compare.set)
				require.False(t, ranks[0].comm.due.Load())
			})
		})
	}
}

// Calls are compared when a program blocks or ends. Comparisons take at most a hundredth of the
// time, no matter how many ranks there are; but if the process was stopped in one, the next is not
// late. A halted rank's request ends with both calls, and with nothing locked.
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

// Calls that change during a comparison are compared next, if a program blocks meanwhile.
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
