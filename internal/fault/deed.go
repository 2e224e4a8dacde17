package fault

import (
	"fmt"
	"slices"
	"time"
)

// A Deed is what a statement does to a rank: it dies, unless something else is said. The
// rest is for ranks that are processes.
type Deed struct {
	Signal string // by this signal, a name of Signals
	Exits  bool   // by exiting with Status
	Status int
	Stop   time.Duration // it is stopped for so long, and does not die
}

type deed = Deed

// Signals are those by which a process may be killed.
var Signals = []string{"SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGABRT", "SIGSEGV", "SIGBUS", "SIGPIPE"}

func (d Deed) verb() string {
	switch {
	case d.Exits:
		return "exit"
	case d.Stop > 0:
		return "stop"
	}
	return "kill"
}

func (d Deed) how() string {
	switch {
	case d.Signal != "":
		return " by " + d.Signal
	case d.Exits:
		return fmt.Sprint(" with status ", d.Status)
	case d.Stop > 0:
		return fmt.Sprint(" for ", d.Stop)
	}
	return ""
}

// OfProcesses returns an error if the plan does what can be done to processes alone.
func (p *Plan) OfProcesses() error {
	i := slices.IndexFunc(p.statements, func(s statement) bool { return s.deed != Deed{} })
	if i < 0 {
		return nil
	}
	return fmt.Errorf("fault plan: %q: ranks are goroutines, and this is for processes", p.statements[i])
}
