package checkpoint_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/checkpoint"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What was saved last comes back, in slices that keep their memory.
func TestSaveAndRestore(t *testing.T) {
	for _, n := range []int{1, 2, 3, 7} {
		for _, scheme := range []checkpoint.Option{checkpoint.Partner(0), checkpoint.Partner(1), checkpoint.Partner(2), checkpoint.RS(2, 1), checkpoint.RS(3, 2)} {
			mpicxtest.Run(t, n, func(ctx context.Context, world *mpicx.Comm) error {
				st := opened(ctx, world, scheme)
				x, step, name := []float64{1, 2, 3}, 0, "a"
				st.Protect("x", &x)
				st.Protect("step", &step)
				st.Protect("name", &name)
				_, err := st.Restore(ctx)
				require.ErrorIs(t, err, checkpoint.ErrNone)
				for step = 1; step <= 5; step++ {
					x[0] = float64(world.Rank() + step)
					name += "b"
					f := st.Save(ctx, step)
					if step%2 == 0 {
						require.NoError(t, f.Wait(ctx))
					}
				}
				same := x
				x[0], step, name = -1, -1, ""
				v := restored(ctx, st)
				require.Equal(t, 5, v)
				require.Equal(t, 5, step)
				require.Equal(t, "abbbbb", name)
				require.Equal(t, []float64{float64(world.Rank() + 5), 2, 3}, x)
				same[1] = 7
				require.Equal(t, 7., x[1])
				loads(ctx, t, st, "x", (world.Rank()+1)%n, 5, []float64{float64((world.Rank()+1)%n + 5), 2, 3})
				return st.Close(ctx)
			})
		}
	}
}
