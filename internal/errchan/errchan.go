package errchan

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
)

// A Channel is one rank's side of the error channel of a communicator. Its methods
// may be called concurrently. They never block.
type Channel interface {
	// Raise gives a report to the next verdict. It opens a round if none is open, adds
	// the report and joins. If the next verdict of this rank lacks the report, the
	// round after it has the report; Noticed announces that round. With corrupt, the
	// verdict is final. For settled see Join.
	Raise(data []byte, corrupt bool, settled []Settled)
	// Join consents to the end of a round that Noticed announced: this rank has no
	// report to add, or has raised it. A round does not end before all ranks have
	// joined. Join does nothing for a round that is over. Settled are the agreements
	// that [ULFM.Freeze] has returned for this communicator and those derived from it.
	// Other backends ignore them.
	Join(round uint64, settled []Settled)
	// Ask floods a request to stop, which is not empty: the client of every rank is told, once.
	// It opens no round. Only the first request on a communicator is flooded.
	Ask(request []byte)
	// Release says that this rank's program has closed the communicator, and that the client knew
	// of no open round there. The client still joins rounds. It is told once all ranks have said
	// so or, if they see deaths, all living ones. With a black channel, ranks that have called
	// Leave count too.
	Release()
	// Waiting says what the open round waits for, for the diagnosis of a hang. It is
	// empty when no round is open.
	Waiting() string
	// Leave says that the rank's program has ended. Its client still joins rounds. No round of a
	// duplicate that the rank has not made waits for it. In agreements the rank counts as dead.
	Leave()
	// Close ends the channel. No other method is called after it.
	Close() error
}

// A Client receives the notices and verdicts of a Channel, on any goroutine, one call
// at a time. Only the death of its own process may come concurrently. Its methods must
// not block.
type Client interface {
	// Noticed reports that a round is open. By is the rank from which this one learned
	// it: itself, if it raised the report. Corrupt says that the verdict of this round
	// will be final; or the verdict of the next round, if the verdict of this one is on
	// its way already. Noticed comes once for each round. It comes a second time, with
	// corrupt, if this rank learns only later, while the round is open, that the
	// verdict will be final.
	Noticed(round uint64, by int, corrupt bool)
	// Resolved reports the verdict of the round that was noticed. The round is over.
	Resolved(*Verdict)
	// Asked reports a request to stop, also the one of this rank.
	Asked(request []byte)
	// Released says that all ranks have released the communicator (see [Channel]). No error can
	// come, so the channel may be closed.
	Released()
}

// Noticed has the arguments of a Client's Noticed.
type Noticed struct {
	Round   uint64
	By      int
	Corrupt bool
}

// A Report is one error that a rank raised.
type Report struct {
	Rank    int
	Corrupt bool   // whether the rank unwound, which makes the verdict final
	Data    []byte // what the client has passed to Raise; it must not be changed
	// Index is the number of the report among those of its rank in the round, from 0. Only some
	// backends use it, and in a Verdict it is 0.
	Index int
}

// AnyCorrupt says whether one of the reports is of a rank that unwound.
func AnyCorrupt(reports []Report) bool {
	return slices.ContainsFunc(reports, func(r Report) bool { return r.Corrupt })
}

// OneOf names the ranks from first to last, for one of which a round waits.
func OneOf(first, last int) string {
	if first == last {
		return fmt.Sprintf("rank %d", first)
	}
	return fmt.Sprintf("one of ranks %d to %d", first, last)
}

// A Verdict is the result of a round, equal at all ranks. The ranks of one process may
// share it, so it must not be changed.
type Verdict struct {
	Round   uint64
	Corrupt bool     // whether it is final, so that no round follows
	Reports []Report // ordered by rank; those of one rank are in the order in which it raised them
	Dead    []int    // the ranks whose processes have died, ascending; empty if the backend sees no deaths
	// Settled are the ends of the last agreements that ranks knew of when they joined the
	// round. They are ordered, and no two are of the same communicator and Agreement.
	Settled []Settled

	meaning memo
}

// Of returns the reports of a rank, in the order in which it raised them.
func (v *Verdict) Of(rank int) []Report {
	byRank := func(r Report, rank int) int { return cmp.Compare(r.Rank, rank) }
	first, _ := slices.BinarySearchFunc(v.Reports, rank, byRank)
	next, _ := slices.BinarySearchFunc(v.Reports, rank+1, byRank)
	return v.Reports[first:next]
}

// Meaning returns read(v). It calls read once for all the ranks that share v.
func (v *Verdict) Meaning(read func(*Verdict) any) any {
	return v.meaning.get(func() any { return read(v) })
}

// memo is a value that is computed once, by the first goroutine that needs it.
type memo struct {
	once sync.Once
	made any
}

func (m *memo) get(f func() any) any {
	m.once.Do(func() { m.made = f() })
	return m.made
}
