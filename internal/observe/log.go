package observe

import (
	"context"
	"log/slog"
)

// log logs an event of an error: a corruption as an error, others as warnings. It leaves out events
// that tell the reader of a log nothing new.
func log(to *slog.Logger, e *Event) {
	level, text, args := slog.LevelWarn, string(e.Kind), []any{"rank", e.Rank, "comm", e.Comm, "epoch", e.Round}
	if e.Final {
		level = slog.LevelError
	}
	switch e.Kind {
	case Fault:
		text, args = "signal", append(args, "code", e.Code, "message", e.Text, "corrupt", e.Final)
	case Unsent:
		args = []any{"rank", e.Rank, "comm", e.Comm, "message", e.Text}
	case Notice:
		if *e.By == e.Rank {
			return // this rank has raised the error itself
		}
		args = append(args, "from", *e.By)
	case Revoke:
		text, args = "revoked", append(args, "from", *e.By)
	case Verdict:
		text, args = "resolved", append(args, "failures", e.Failures)
		if e.Final {
			text = "corrupted"
		}
	case Death:
		text, args = "died", append(args, "process", *e.By)
		if e.Calls != "" {
			args = append(args, "calls", e.Calls)
		}
	case Stop: // is no error
		level, args = slog.LevelInfo, append(args, "from", *e.By, "message", e.Text)
	case Drop:
		level, text = slog.LevelInfo, "dropped"
	default:
		return
	}
	to.Log(context.Background(), level, text, args...)
}
