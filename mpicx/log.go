package mpicx

import (
	"context"
	"log/slog"

	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/ledger"
	"github.com/mpicx/go-mpicx/internal/timeline"
)

// logging is the watcher of WithLogger.
type logging struct {
	*slog.Logger
	rank int
}

func (log logging) happened(l timeline.Line) {
	if l.Event == timeline.Unsent {
		log.Warn("unsent", "rank", log.rank, "comm", l.Comm, "message", l.Text)
	}
}

func (log logging) blocked(func() string) (over func()) { return func() {} }

// heard logs an event of the ledger.
func (log logging) heard(e *ledger.Event) {
	level, args := slog.LevelWarn, []any{"rank", ownerOf(e.Comm).rank, "comm", ownerOf(e.Comm).name, "epoch", e.Round}
	if e.Corrupt {
		level = slog.LevelError
	}
	switch e.Kind {
	case ledger.Signalled:
		f := decodeFailure(errchan.Report{Data: e.Raised.Data})
		args = append(args, "code", f.Code, "message", f.Message, "corrupt", e.Corrupt)
	case ledger.Noticed:
		if e.By == ownerOf(e.Comm).rank {
			return // this rank has raised the error itself
		}
		args = append(args, "from", e.By)
	case ledger.Revoked:
		args = append(args, "from", e.By)
	case ledger.Resolved, ledger.Corrupted:
		args = append(args, "failures", len(e.Error.Verdict.Reports))
	case ledger.Died:
		args = append(args, "process", e.By)
	default:
		return
	}
	log.Log(context.Background(), level, e.Kind.String(), args...)
}
