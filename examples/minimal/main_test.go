package main

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

func TestListing(t *testing.T) {
	for _, test := range []struct {
		fault bool
		want  string
	}{
		{false, `with a fault: false
  rank 0 saw answer 42
  rank 1 saw answer 42
`},
		{true, `with a fault: true
  rank 0 saw code 666 of rank 0, "the answer is not known yet"; raised here: true
  rank 1 saw code 666 of rank 0, "the answer is not known yet"; raised here: false
`},
	} {
		var b bytes.Buffer
		mpicxtest.Run(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
			return listing(ctx, &b, world, test.fault)
		})
		require.Equal(t, test.want, b.String())
	}
}
