package errchan

import "sync"

// A Channel is one rank's side of the error channel of one communicator. Its
// methods may be called from many goroutines at once and never block.
type Channel interface {
	// Raise makes every rank get a verdict that has this report: it opens the round if
	// none is open, adds the report, and joins. Where the verdict that this rank gets
	// next lacks the report, the round after that has it, and is noticed. With
	// corrupt, the verdict is final. For settled see Join.
	Raise(data []byte, corrupt bool, settled []Settled)
	// Join gives the consent to end the round, which Noticed told of: this rank
	// has no report to add, or has raised it. A rank that never joins holds the
	// others up. For a round that is over it does nothing. Settled are the agreements
	// that [ULFM.Freeze] has returned for this communicator and those derived from
	// it; other backends ignore them.
	Join(round uint64, settled []Settled)
	// Waiting says what the open round still waits for, for people who ask why a
	// program hangs; it is empty when no round is open.
	Waiting() string
	// Close ends the channel; no other method is called after it.
	Close() error
}

// A Client is told what comes out of a Channel, one call at a time but for that of
// its own process's death, on any goroutine. It must not block.
type Client interface {
	// Noticed: a round is open, and rank by is who this one learned it from
	// (itself, if it raised the report). Corrupt: its verdict will be final, or, if that
	// is on its way already, the next one. It is told once of a round, and once more,
	// with corrupt, where the first time was without and that is learned while the
	// round is open.
	Noticed(round uint64, by int, corrupt bool)
	// Resolved: the round that was noticed is over.
	Resolved(*Verdict)
}

// A Report is what one rank raised.
type Report struct {
	Rank    int
	Corrupt bool   // the rank unwound
	Data    []byte // the client's; nobody changes it
	// Index counts the reports of a rank in a round, from 0, for backends that need it.
	// Those of a Verdict have 0.
	Index int
}

// A Verdict is how a round ended. All ranks get equal ones, and within a process
// they may share one: nobody changes it.
type Verdict struct {
	Round   uint64
	Corrupt bool     // final: no round follows
	Reports []Report // by rank, those of one rank in the order they were raised
	Dead    []int    // whose processes have died, ascending; a backend that sees none die has none
	// Settled are the last agreements that ranks knew of when they joined the round,
	// ordered, no two of the same communicator and Agreement.
	Settled []Settled

	meaning memo
}

// Meaning returns what read makes of the verdict, which is asked once for all
// the ranks that share it.
func (v *Verdict) Meaning(read func(*Verdict) any) any {
	return v.meaning.of(func() any { return read(v) })
}

// memo is a value made once.
type memo struct {
	once sync.Once
	made any
}

func (m *memo) of(f func() any) any {
	m.once.Do(func() { m.made = f() })
	return m.made
}
