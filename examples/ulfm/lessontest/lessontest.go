package lessontest

import (
	"context"
	"testing"

	"github.com/mpicx/go-mpicx/examples/ulfm/lesson"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// NeedsULFM skips t if the error backend does not see deaths.
func NeedsULFM(t *testing.T) {
	t.Helper()
	if mpicx.Backend != "ulfm" {
		t.Skip("needs -tags ulfm")
	}
}

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
