package checkpoint_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/checkpoint"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// After a Shrink ranks have other numbers. What is saved then is under these, Once variables too,
// when ranks die again.
func TestShrinkTwice(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	mpicxtest.Run(t, 4, func(ctx context.Context, comm *mpicx.Comm) error {
		st := opened(ctx, comm, checkpoint.Partner(1))
		constant, x := comm.Rank(), comm.Rank()
		st.Protect("constant", &constant, checkpoint.Once)
		st.Protect("x", &x)
		me := comm.Rank()
		for version, dies := range []int{0, 0} {
			x = 10*version + me
			st.Save(ctx, version).MustWait(ctx)
			comm.Agree(1).MustWait(ctx)
			if comm.Rank() == dies {
				mpicxtest.Die(comm)
			}
			_ = comm.Barrier().Wait(ctx) // which tells of the death
			var err error
			if comm, err = result(ctx, comm.Shrink()); err != nil {
				return err
			}
			if st, err = st.Rejoin(ctx, comm); err != nil {
				return err
			}
			constant, x = -1, -1
			v := restored(ctx, st)
			require.Equal(t, version, v)
			require.Equal(t, me, constant)
			require.Equal(t, 10*version+me, x)
			loads(ctx, t, st, "constant", dies, v, []int{version}) // who has died: rank 0, then 1
		}
		return st.Close(ctx)
	})
}
