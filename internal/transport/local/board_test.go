package local

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
)

var (
	barrier = signature.Call{Kind: signature.Barrier}.Word()
	refused = signature.Call{Kind: signature.Refused, Root: 1}.Word()
	reduce  = signature.Call{Kind: signature.Reduce, Root: 0, Of: signature.Int, Count: 1}.Word()
	ints    = gathers(signature.Int)
	floats  = gathers(signature.Float64)
	raw     = signature.Call{Kind: signature.Gather, Of: signature.Bytes, Count: 8}.Word()
)

func gathers(of signature.Element) signature.Word {
	return signature.Call{Kind: signature.Gather, Of: of, Count: 1}.Word()
}

// What ranks do, one after another.
type step = func(ranks []*Comm)

func calls(rank int, words ...signature.Word) step {
	return func(ranks []*Comm) {
		for _, w := range words {
			ranks[rank].Call(ranks[rank].Epoch(), w)
		}
	}
}

// Of three ranks, exactly those are halted whose call does not fit one of another rank in the same
// place, whether they wait for anything or not, and however far ahead they are (M2).
func TestCallsAreCompared(t *testing.T) {
	err := errors.New("an error")
	advance := func(rank int) step { return func(ranks []*Comm) { ranks[rank].Advance(0, err) } }
	for _, test := range []struct {
		name string
		do   []step
		want []int // the ranks that are halted
	}{
		{"the same call", []step{calls(0, barrier), calls(1, barrier), calls(2, barrier)}, nil},
		{"two calls", []step{calls(0, barrier), calls(1, reduce)}, []int{0, 1}},
		{"one of three differs", []step{calls(2, barrier), calls(1, barrier), calls(0, reduce)}, []int{0, 1, 2}},
		{"one comes later", []step{calls(0, barrier), calls(1, reduce), calls(2, reduce)}, []int{0, 1, 2}},
		{"in an earlier call", []step{calls(0, slices.Repeat([]signature.Word{barrier}, 99)...), calls(1, barrier, reduce)}, []int{0, 1}},
		{"behind it", []step{calls(0, barrier, barrier), calls(1, reduce, reduce), calls(2, barrier)}, []int{0, 1, 2}},
		{"in a later call", []step{calls(0, barrier, reduce), calls(1, barrier, barrier), calls(2, barrier)}, []int{0, 1}},
		{"a bad call", []step{calls(0, barrier), calls(1, refused)}, []int{0}},
		{"a bad call comes first", []step{calls(1, refused, barrier), calls(0, barrier), calls(2, barrier)}, []int{0, 2}},
		{"bytes fit both", []step{calls(0, raw), calls(1, floats), calls(2, raw)}, nil},
		{"bytes fit both, which differ", []step{calls(0, raw), calls(1, floats), calls(2, ints)}, []int{1, 2}},
		{"in the next epoch", []step{calls(0, barrier), advance(1), calls(1, reduce)}, nil},
		{"both are there", []step{calls(0, barrier), advance(1), advance(0), calls(0, barrier), calls(1, reduce)}, []int{0, 1}},
		{"in the epoch before", []step{advance(1), calls(1, reduce), calls(0, barrier)}, nil},
		{"decided before the error", []step{advance(0), calls(1, reduce), func(ranks []*Comm) { ranks[0].Call(0, barrier) }}, nil},
		{"after a revoke", []step{calls(0, barrier), func(ranks []*Comm) { ranks[1].Revoke(err) }, calls(1, reduce)}, nil},
		{"a member has died", []step{calls(0, barrier), func(ranks []*Comm) { ranks[2].Die() }, calls(1, reduce)}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			ranks := NewMortal(3)
			for _, do := range test.do {
				do(ranks)
			}
			var halted []int
			for i, c := range ranks {
				if c.Mismatch() != nil {
					halted = append(halted, i)
				}
			}
			require.Equal(t, test.want, halted)
		})
	}
}

// What a halted rank waits for ends with both calls, and with nothing locked (M3).
func TestHaltedByAComparison(t *testing.T) {
	ranks := New(2)
	tag := transport.CollectiveTag(ranks[0].Call(0, barrier))
	n := start(ranks[0], ranks[0].Irecv, transport.Request{Peer: 1, Tag: tag, Signature: barrier})
	other := recv(ranks[0], 1, nil)
	ranks[1].Call(0, reduce)
	for _, r := range []*request{n, other} {
		require.Equal(t, 1, r.ends)
		require.False(t, r.locked)
		require.Equal(t, &transport.MismatchError{Number: 1, Own: barrier, Source: 1, Theirs: reduce}, r.Err)
	}
}
