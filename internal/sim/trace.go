package sim

import "fmt"

// traces says whether anybody reads traces: ask first where the arguments cost
// an allocation.
func (w *World) traces() bool { return w.cfg.Trace != nil }

// trace writes what a rank does, with its clock. A rank that is at work on an
// event may be ahead of others whose lines follow.
func (w *World) trace(rank int, format string, args ...any) {
	if w.traces() {
		us := float64(w.RankNow(rank)) / 1e3
		fmt.Fprintf(w.cfg.Trace, "%12.3f µs  rank %d  %s\n", us, rank, fmt.Sprintf(format, args...))
	}
}

// traceMessage writes what becomes of a message. Ranks are those of the world.
func (w *World) traceMessage(rank int, what string, m *message) {
	if w.traces() {
		w.trace(rank, "%s %d -> %d tag %d, %d bytes%s", what, m.from.p.rank, m.rank, m.Tag, m.Bytes, m.to.g)
	}
}

// String is what is added to lines about messages that are not of the world's
// own communicator.
func (g *group) String() string {
	if g.id == 0 {
		return ""
	}
	return fmt.Sprintf(", communicator %d", g.id)
}
