package checkpoint

import (
	"fmt"
	"slices"

	"github.com/klauspost/reedsolomon"
)

// newCode returns the code of a scheme. One goroutine only: the program computes meanwhile, on all
// processors. A code is made anew for each decoding, so a cache of inverted matrices would serve
// nothing.
func newCode(s scheme, opts ...reedsolomon.Option) (reedsolomon.Encoder, error) {
	return reedsolomon.New(s.k, s.m, append(opts, reedsolomon.WithMaxGoroutines(1), reedsolomon.WithInversionCache(false))...)
}

// newRows returns, for each parity of the scheme, its code alone, which a holder computes as the
// data arrive. There are none for copies. A holder of parity j gets the chunks one after the other
// and needs row j only. So each row becomes a code with one parity. It has the coefficients of the
// whole code, with which decode computes.
func newRows(s scheme) (rows []reedsolomon.Encoder, err error) {
	if s.k == 1 {
		return nil, nil
	}
	code, err := newCode(s)
	if err != nil {
		return nil, err
	}
	shards := make([][]byte, s.k+s.m) // of the unit matrix: the parities are the coefficients
	for i := range shards {
		if shards[i] = make([]byte, s.k); i < s.k {
			shards[i][i] = 1
		}
	}
	if err := code.Encode(shards); err != nil {
		return nil, err
	}
	for _, row := range shards[s.k:] {
		r, err := newCode(scheme{s.k, 1}, reedsolomon.WithCustomMatrix([][]byte{row}))
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// decode fills in data shard i of a stripe from any k of its shards; the others are nil.
func decode(s scheme, shards [][]byte, i int) ([]byte, error) {
	if s.k == 1 { // copies
		return shards[slices.IndexFunc(shards, func(b []byte) bool { return b != nil })], nil
	}
	code, err := newCode(s)
	if err != nil {
		return nil, err
	}
	required := make([]bool, s.k)
	required[i] = true
	if err := code.ReconstructSome(shards, required); err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	return shards[i], nil
}
