package sim

import "fmt"

// traces reports whether there is a trace. Ask first if the arguments cost an allocation.
func (w *World) traces() bool { return w.cfg.Trace != nil }

// trace writes what a rank does, with the rank's clock. If the rank is handling an event, its clock
// may be ahead of those of the lines that follow.
func (w *World) trace(rank int, format string, args ...any) {
	if w.traces() {
		us := float64(w.RankNow(rank)) / 1e3
		fmt.Fprintf(w.cfg.Trace, "%12.3f µs  rank %d  %s\n", us, rank, fmt.Sprintf(format, args...))
	}
}

// traceMessage writes what happens to a message. Ranks are those of the world.
func (w *World) traceMessage(rank int, what string, m *message) {
	if w.traces() {
		w.trace(rank, "%s %d -> %d tag %d, %d bytes%s", what, m.from.p.rank, m.rank, m.Tag, m.Bytes, m.to.comm)
	}
}

// String is appended to lines about messages of communicators other than the world's own.
func (c *communicator) String() string {
	if c.id == 0 {
		return ""
	}
	return fmt.Sprintf(", communicator %d", c.id)
}
