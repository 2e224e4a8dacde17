package lessontest

import (
	"context"
	"testing"

	"github.com/mpicx/go-mpicx/examples/ulfm/lesson"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// Run runs a lesson on the given number of ranks and returns what they said. If a rank hangs or
// returns an error, t fails.
func Run(t *testing.T, ranks int, program lesson.Program) string {
	t.Helper()
	var out lesson.Lines
	mpicxtest.Run(t, ranks, func(ctx context.Context, world *mpicx.Comm) error {
		return program(ctx, world, &out)
	})
	return out.String()
}
