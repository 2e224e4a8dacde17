package fault

import (
	"fmt"
	"slices"
	"time"
)

// A Deed is what a statement does to a rank. The zero Deed kills it. Others need ranks that are
// processes.
type Deed struct {
	Signal string // the rank is killed by this signal, a name of Signals
	Exits  bool   // the rank exits with Status
	Status int
	Stop   time.Duration // the rank is stopped for this long, and does not die
}

// Signals are the signals that a process may be killed by.
var Signals = []string{"SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGABRT", "SIGSEGV", "SIGBUS", "SIGPIPE"}

// words returns the verb of the statement, and what follows its victim.
func (d Deed) words() (verb, how string) {
	switch {
	case d.Exits:
		return "exit", fmt.Sprint(" with status ", d.Status)
	case d.Stop > 0:
		return "stop", fmt.Sprint(" for ", d.Stop)
	case d.Signal != "":
		return "kill", " by " + d.Signal
	}
	return "kill", ""
}

// Deadly reports whether a rank may die by the plan.
func (p *Plan) Deadly() bool {
	return slices.ContainsFunc(p.statements, func(s statement) bool { return s.Stop == 0 })
}

// OfProcesses returns an error if the plan does something that can be done only to processes.
func (p *Plan) OfProcesses() error {
	i := slices.IndexFunc(p.statements, func(s statement) bool { return s.Deed != Deed{} })
	if i < 0 {
		return nil
	}
	return fmt.Errorf("fault plan: %q: ranks are goroutines, and this is for processes", p.statements[i])
}
