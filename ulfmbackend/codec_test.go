package ulfmbackend

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/errchan"
)

// Bytes from a peer are data: Decode says what is wrong with them.
func TestDecodeLimits(t *testing.T) {
	id := errchan.Agreement{Seq: 1}
	settled := func(s ...errchan.Settled) *Message {
		return &Message{Kind: Up, Value: &Value{AckAll: true, Settled: s}}
	}
	decided := func(d errchan.Decision, by int) *Message {
		return settled(errchan.Settled{Comm: 3, ID: id, Decision: &d, By: by})
	}
	up := func(r ...errchan.Report) *Message { return &Message{Kind: Up, Value: &Value{AckAll: true, Reports: r}} }
	for _, test := range []struct {
		msg    *Message
		expect string
	}{
		{decided(errchan.Decision{}, 5), "root 5, expected less than 5"},
		{decided(errchan.Decision{Calls: errchan.AnyCalls + 1}, 0), fmt.Sprintf("calls %d, expected less than %[1]d", errchan.AnyCalls+1)},
		{decided(errchan.Decision{Dead: []int{5}}, 0), "rank 5, expected less than 5"},
		{decided(errchan.Decision{Dead: []int{1}, Unacked: []int{2}}, 0), "rank 2 is not acknowledged, expected one of the dead, [1]"},
		{settled(errchan.Settled{Comm: 3, ID: id}, errchan.Settled{Comm: 3, ID: id}), "expected a later one"},
		{settled(errchan.Settled{Comm: 3, ID: id}, errchan.Settled{Comm: 2, ID: id}), "expected a later one"},
		{up(errchan.Report{Rank: 1, Index: 1}, errchan.Report{Rank: 1, Index: 1}), "index 1 of a report of rank 1, expected at least 2"},
		{up(errchan.Report{Rank: 1, Index: maxReports}), "index of a report 2147483647, expected less than"},
		{up(errchan.Report{Rank: 1}, errchan.Report{Rank: 0}), "a report of rank 0, expected one of rank 1 or above"},
		{&Message{Kind: Decided, Stream: Repairs, Value: &neutral, Origin: 5}, "root 5, expected less than 5"},
	} {
		_, err := Decode(Encode(test.msg), 5)
		require.ErrorContains(t, err, test.expect)
	}
	many := Encode(settled())
	_, err := Decode(append(many[:len(many)-1], 0xff, 0xff, 0x03), 5)
	require.ErrorContains(t, err, "number of settled agreements 65535, expected less than 1")
}

// Values combine in any order, and as often as they come (P2, H5).
func TestCombine(t *testing.T) {
	id := errchan.Agreement{Seq: 1}
	decided := func(flag, by int) errchan.Settled {
		return errchan.Settled{Comm: 3, ID: id, Decision: &errchan.Decision{Flag: flag}, By: by}
	}
	value := func(s errchan.Settled, reports ...errchan.Report) Value {
		v := neutral
		v.Settled, v.Reports = []errchan.Settled{s}, reports
		return v
	}
	values := []Value{
		value(decided(1, 0), errchan.Report{Rank: 2}),
		value(decided(2, 1), errchan.Report{Rank: 2, Index: 1}), // the root after, whom the living have
		value(errchan.Settled{Comm: 4, ID: id}, errchan.Report{Rank: 1}),
		value(errchan.Settled{Comm: 4, ID: id, Decision: &errchan.Decision{}}, errchan.Report{Rank: 2}, errchan.Report{Rank: 2, Index: 1}),
		neutral,
	}
	expect := neutral
	expect.Settled = []errchan.Settled{decided(2, 1), {Comm: 4, ID: id}}
	expect.Reports = []errchan.Report{{Rank: 1}, {Rank: 2}, {Rank: 2, Index: 1}}
	for a := range values {
		for b := range values {
			for c := range values {
				x, y, z := values[a], values[b], values[c]
				left, right := combine(combine(x, y), z), combine(x, combine(y, z))
				require.Equal(t, left, right)
				require.Equal(t, left, combine(combine(z, y), combine(left, x)))
				all := combine(left, combine(combine(values[0], values[1]), combine(values[2], values[3])))
				require.Equal(t, expect, all)
			}
		}
	}
}
