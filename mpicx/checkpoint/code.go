package checkpoint

import (
	"fmt"

	"github.com/klauspost/reedsolomon"
)

// newCode returns the code of a scheme.
func newCode(s scheme) (reedsolomon.Encoder, error) {
	return reedsolomon.New(s.k, s.m, reedsolomon.WithMaxGoroutines(1), reedsolomon.WithInversionCache(false))
}

// newRow returns the code of parity j of the scheme alone. A holder computes it as the data arrive.
func newRow(s scheme, j int) (reedsolomon.Encoder, error) {
	code, err := newCode(s)
	if err != nil {
		return nil, err
	}
	row := make([]byte, s.k)
	for i := range row {
		unit := make([][]byte, s.k+s.m)
		for n := range unit {
			unit[n] = make([]byte, 1)
		}
		unit[i][0] = 1
		if err := code.Encode(unit); err != nil {
			return nil, err
		}
		row[i] = unit[s.k+j][0]
	}
	return reedsolomon.New(s.k, 1, reedsolomon.WithCustomMatrix([][]byte{row}), reedsolomon.WithMaxGoroutines(1), reedsolomon.WithInversionCache(false))
}

// decode fills in data shard i of a stripe from any k of its shards; the others are nil.
func decode(s scheme, shards [][]byte, i int) ([]byte, error) {
	if s.k == 1 { // copies
		for _, shard := range shards {
			if shard != nil {
				return shard, nil
			}
		}
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
