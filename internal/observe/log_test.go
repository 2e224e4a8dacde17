package observe_test

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/observe"
)

// All ranks in the log are numbers in the job, on whichever communicator the event is.
func TestLog(t *testing.T) {
	var b bytes.Buffer
	untimed := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	o := &observe.Observer{Rank: 3, Log: slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{ReplaceAttr: untimed}))}
	own, other := 3, 5
	for _, e := range []observe.Event{
		{Kind: observe.Start, Size: 6},
		{Kind: observe.Fault, Comm: "row", Text: "bad", Code: 7},
		{Kind: observe.Notice, Comm: "row", By: &own},
		{Kind: observe.Notice, Comm: "row", By: &other, Final: true},
		{Kind: observe.Verdict, Comm: "row", Failures: 2},
		{Kind: observe.Verdict, Comm: "row", Round: 1, Final: true},
		{Kind: observe.Death, Comm: "row", By: &other, Final: true},
		{Kind: observe.Revoke, Comm: "row", By: &other, Final: true},
		{Kind: observe.Unsent, Comm: "row", Text: "late"},
	} {
		o.Happened(e)
	}
	require.Equal(t, `level=WARN msg=signal rank=3 comm=row epoch=0 code=7 message=bad corrupt=false
level=ERROR msg=notice rank=3 comm=row epoch=0 from=5
level=WARN msg=resolved rank=3 comm=row epoch=0 failures=2
level=ERROR msg=corrupted rank=3 comm=row epoch=1 failures=0
level=ERROR msg=died rank=3 comm=row epoch=0 process=5
level=ERROR msg=revoked rank=3 comm=row epoch=0 from=5
level=WARN msg=unsent rank=3 comm=row message=late
`, b.String())
	(*observe.Observer)(nil).Happened(observe.Event{Kind: observe.Mark})
}
