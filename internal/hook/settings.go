package hook

import (
	"io"
	"time"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// The error backends. Both are always built, because tests compare them. A job uses one.
const (
	BlackChannel = "blackchannel"
	ULFM         = "ulfm"
)

// Fresh is the greatest number of fresh goroutine ranks of a job.
const Fresh = 1000

// Settings are options of a job.
type Settings struct {
	Spares    int
	Respawn   bool
	MostFresh int    // fresh goroutine ranks; Fresh, unless a test changes it
	Backend   string // BlackChannel or ULFM
	// Wrap puts a layer between communicators and their transport, to count messages or to disturb
	// them. It may be nil.
	Wrap func(transport.Comm) transport.Comm
	// Diagnoses gets reports of a hang.
	Diagnoses io.Writer
	// Stall is how long no rank may move until that is reported; 0: 10 s, and never in a bubble of
	// package testing/synctest; less: never.
	Stall time.Duration
	// Left is called at the end of Run, if none of its ranks has failed, with what the program of
	// each rank of this process has left behind: futures that have failed, and messages. It may be
	// nil.
	Left func(rank int, what []string)
}

// A Settable is Settings in a type that embeds it, mpicx's options. Nothing in it has an exported
// name.
type Settable struct{ set Settings }

func (s *Settable) settings() *Settings { return &s.set }

type holder interface{ settings() *Settings }

// In returns the settings in options.
func In(options holder) *Settings { return options.settings() }

// Option returns an option that changes the settings. O is mpicx.Option.
func Option[O ~func(P), P holder](change func(*Settings)) O {
	return func(options P) { change(In(options)) }
}

// Backend returns an option that chooses an error backend by its name, for tests that compare the
// two.
func Backend[O ~func(P), P holder](name string) O {
	return Option[O](func(s *Settings) { s.Backend = name })
}

// Transport returns an option that sets Wrap.
func Transport[O ~func(P), P holder](wrap func(transport.Comm) transport.Comm) O {
	return Option[O](func(s *Settings) { s.Wrap = wrap })
}

// SettingsOf returns what a mpicx.Option sets.
func SettingsOf[O ~func(P), P interface {
	*T
	holder
}, T any](option O) *Settings {
	options := P(new(T))
	option(options)
	return In(options)
}
