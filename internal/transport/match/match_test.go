package match

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// letter is a message.
type letter struct {
	Node[letter]
	status transport.Status
}

func post(epoch transport.Epoch, source, tag int) *letter {
	l := &letter{status: transport.Status{Source: source, Tag: tag}}
	l.Key, l.Of = Key{epoch, source, tag}, l
	return l
}

// pool draws sources, tags and epochs: few, so that most match, or many, for long queues.
type pool struct{ *rand.Rand }

func (p pool) message(kinds int) (transport.Epoch, int, int) {
	return transport.Epoch(p.IntN(2)), p.IntN(3), p.IntN(kinds) - 2 // -1 is no message's
}

func (p pool) receive(kinds, wildcards int) *transport.Request {
	e, source, tag := p.message(kinds)
	r := &transport.Request{Epoch: e, Peer: source, Tag: tag}
	if p.IntN(100) < wildcards {
		r.Peer = transport.AnySource
	}
	if p.IntN(100) < wildcards {
		r.Tag = transport.AnyTag
	}
	return r
}

// Whatever is pushed, found and removed, in queues of any length, each Find returns what
// looking at all in their order does.
func TestFindIsTheOldestThatMatches(t *testing.T) {
	for seed := range uint64(9) {
		p := pool{rand.New(rand.NewPCG(seed, 1))}
		kinds := []int{3, 30, 3000}[seed%3]
		wildcards := []int{0, 3, 50}[seed/3%3]
		var messages Messages[letter]
		var receives Receives
		var letters []*letter
		var requests []*transport.Request
		indexed := 0
		for step := range 2000 {
			grow := step/500%2 == 0 // long and short in turn
			e, source, tag := p.message(kinds)
			m, r := post(e, source, tag), p.receive(kinds, wildcards)

			i := slices.IndexFunc(letters, func(l *letter) bool { return l.Epoch == r.Epoch && r.Matches(l.status) })
			j := slices.IndexFunc(requests, func(r *transport.Request) bool { return r.Epoch == m.Epoch && r.Matches(m.status) })
			var oldest *Node[letter]
			if i >= 0 {
				oldest = &letters[i].Node
			}
			var first *transport.Request
			if j >= 0 {
				first = requests[j]
			}
			require.True(t, oldest == messages.Find(r) && first == receives.Find(m.Key), "seed %d, step %d", seed, step)

			if len(letters) > 0 && p.IntN(10) == 0 { // whichever
				i = p.IntN(len(letters))
			}
			if i >= 0 && (!grow || p.IntN(4) == 0) {
				messages.Remove(&letters[i].Node)
				letters = slices.Delete(letters, i, i+1)
			}
			if len(requests) > 0 && p.IntN(10) == 0 {
				j = p.IntN(len(requests))
			}
			if j >= 0 && (!grow || p.IntN(4) == 0) {
				receives.Remove(requests[j])
				requests = slices.Delete(requests, j, j+1)
			}
			if grow || p.IntN(3) == 0 {
				messages.Push(&m.Node)
				letters = append(letters, m)
				receives.Push(r)
				requests = append(requests, r)
			}
			require.Equal(t, len(letters), messages.Len())
			require.Equal(t, len(requests), receives.Len())
			if messages.index != nil && receives.index != nil {
				indexed++
			}
			if step%100 == 0 {
				require.True(t, slices.EqualFunc(letters, slices.Collect(messages.All()), func(l *letter, n *Node[letter]) bool { return l == n.Of }))
				require.True(t, slices.Equal(requests, slices.Collect(receives.All())))
			}
		}
		if kinds > 3 && wildcards < 50 {
			require.NotZero(t, indexed, "seed %d: the index was not tested", seed)
		}
		for m := range messages.All() {
			messages.Remove(m)
		}
		for r := range receives.All() {
			receives.Remove(r)
		}
		require.Equal(t, Messages[letter]{number: messages.number}, messages)
		require.Equal(t, Receives{number: receives.number}, receives)
	}
}

// Long queues have an index, so that a search does not look at n messages. It keeps nothing of what
// has gone, even if the queue is long forever.
func TestIndexForgets(t *testing.T) {
	var messages Messages[letter]
	var receives Receives
	for tag := range 2 * few {
		messages.Push(&post(0, 1, tag).Node)
		receives.Push(&transport.Request{Peer: 1, Tag: tag})
	}
	last := Key{0, 1, 2*few - 1}
	for range 10_000 {
		messages.Remove(messages.Find(&transport.Request{Peer: 1, Tag: last.Tag}))
		messages.Push(&post(0, 1, last.Tag).Node)
		receives.Remove(receives.Find(last))
		receives.Push(&transport.Request{Peer: 1, Tag: last.Tag})
	}
	require.Len(t, messages.index, 2*few)
	require.Len(t, messages.index[last], 1)
	require.Less(t, cap(messages.index[last]), 8)
	require.Len(t, receives.index, 2*few)
	require.Len(t, receives.index[last], 1)
	require.Less(t, cap(receives.index[last]), 8)
}

// The calls of an epoch are numbered from 1, and compared with the messages of that epoch alone: an
// error may have had ranks make other calls.
func TestCallsOfEpochs(t *testing.T) {
	barrier, dup := signature.Call{Kind: signature.Barrier}.Word(), signature.Call{Kind: signature.Dup}.Word()
	var p Matcher[struct{}]
	call := func(e transport.Epoch, w signature.Word) int {
		number, mismatch := p.Call(e, w)
		require.Nil(t, mismatch)
		return number
	}
	contradicts := func(e transport.Epoch, number int, w signature.Word) bool {
		return p.Contradicts(&Envelope{Key: Key{Epoch: e, Source: 1, Tag: transport.CollectiveTag(number)}, Signature: w}) != nil
	}
	require.Equal(t, 1, call(0, barrier))
	require.Equal(t, 2, call(0, barrier))
	require.True(t, contradicts(0, 2, dup))
	p.Advance(0, errors.New("an error"))
	now := p.Epoch()
	require.Greater(t, call(0, barrier), 2, "a call that was decided before the error is none of this epoch")
	require.Equal(t, 1, call(now, dup))
	require.False(t, contradicts(0, 1, barrier), "what was sent before the error is not compared")
	require.True(t, contradicts(now, 1, barrier))
	require.False(t, contradicts(now, 2, barrier), "what is still to come is compared by Call")
	for range recalled {
		call(now, barrier)
	}
	require.False(t, contradicts(now, 1, dup), "it is recalled no more")
	require.True(t, contradicts(now, 2, dup))
	p.Lose(3)
	require.False(t, contradicts(now, 2, dup), "where a member has died nothing is compared")
}

// A request needs a dead member if it names it, or is of a collective operation (H1).
func TestWhoNeedsTheDead(t *testing.T) {
	var p Matcher[letter]
	call, anybody := transport.CollectiveTag(1), transport.AnySource
	for _, r := range []transport.Request{{Peer: 0}, {Peer: 1, Tag: call}, {Peer: anybody}} {
		require.NoError(t, p.DeathFor(&r), "nobody has died")
	}
	p.Lose(2)
	p.Lose(1)
	for _, test := range []struct {
		peer, tag int
		dead      error
	}{
		{0, 5, nil}, {anybody, 5, nil}, {anybody, transport.AnyTag, nil},
		{2, 5, &transport.DeadError{Rank: 2}}, {1, transport.NoTag, &transport.DeadError{Rank: 1}},
		{0, call, &transport.DeadError{Rank: 1}}, {2, call, &transport.DeadError{Rank: 2}},
	} {
		require.Equal(t, test.dead, p.DeathFor(&transport.Request{Peer: test.peer, Tag: test.tag}), "peer %d, tag %d", test.peer, test.tag)
	}
}

// M3: what a halted rank begins ends with the mismatch, until the next epoch.
func TestHaltedUntilTheNextEpoch(t *testing.T) {
	var p Matcher[letter]
	r := new(transport.Request)
	require.NoError(t, p.Barred(r))
	mismatch := &transport.MismatchError{Number: 1}
	p.Halt(mismatch)
	require.True(t, p.IsHalted())
	require.Equal(t, error(mismatch), p.Barred(r))
	p.Halt(&transport.MismatchError{Number: 2})
	require.Equal(t, error(mismatch), p.Barred(r), "the first")
	over := errors.New("an error")
	p.Advance(0, over)
	require.False(t, p.IsHalted())
	require.Equal(t, over, p.Barred(r))
	r.Epoch = p.Epoch()
	require.NoError(t, p.Barred(r))
}
