package checkpoint_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/checkpoint"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// A variable takes the place of the one that had its name: the next attempt of a program
// protects its own.
func TestProtectAgain(t *testing.T) {
	mpicxtest.Run(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		st := opened(ctx, world)
		me := world.Rank()
		x, never := []int{me}, []int{7 * me}
		st.Protect("x", &x)
		st.Protect("never", &never, checkpoint.Once)
		st.Save(ctx, 1).MustWait(ctx)
		var y, again []int
		st.Protect("x", &y)
		st.Protect("never", &again, checkpoint.Once)
		v := restored(ctx, st)
		if v != 1 || len(y) != 1 || y[0] != me || len(again) != 1 || again[0] != 7*me {
			return fmt.Errorf("version %d: %v, %v", v, y, again)
		}
		y[0] = me + 10
		st.Save(ctx, 2).MustWait(ctx)
		y, again = nil, nil
		if v = restored(ctx, st); v != 2 || y[0] != me+10 || again[0] != 7*me || x[0] != me {
			return fmt.Errorf("version %d: %v, %v, %v", v, x, y, again)
		}
		return st.Close(ctx)
	})
}
