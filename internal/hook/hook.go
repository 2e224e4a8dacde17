package hook

import (
	"io"

	"github.com/mpicx/go-mpicx/internal/timeline"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// Die marks the rank of a *mpicx.Comm as dead: its operations reach nobody from
// now on. Package mpicx sets it.
var Die func(comm any)

// Mortal says whether peers, or a launcher, would see the rank of a *mpicx.Comm die. Package
// mpicx sets it.
var Mortal func(comm any) bool

// Dead says whether the rank of a *mpicx.Comm has died. Package mpicx sets it.
var Dead func(comm any) bool

// Backend returns a mpicx.Option that chooses an error backend by its name, for
// tests that hold both against each other. Package mpicx sets it.
var Backend func(name string) any

// Transport returns a mpicx.Option that puts a layer between communicators and their
// transport: to count messages, or to disturb them. Package mpicx sets it.
var Transport func(wrap func(transport.Comm) transport.Comm) any

// Progress returns what differs if the rank of a *mpicx.Comm has begun or ended an operation
// since it was asked before. Package mpicx sets it.
var Progress func(comm any) string

// Blocked returns what mpicx.Comm.Blocked does, of all communicators of its rank. Package mpicx
// sets it.
var Blocked func(comm any) []string

// DiagnosesTo returns a mpicx.Option that has what Run prints of a hang written to w. Package
// mpicx sets it.
var DiagnosesTo func(w io.Writer) any

// Held is how many requests of a *mpicx.Comm's rank have not ended, and how many messages to
// it wait for receives. Package mpicx sets it.
var Held func(comm any) (requests, messages int)

// Left returns a mpicx.Option that has f told, at the end of a Run none of whose ranks has failed,
// what the program of each rank of this process has left behind: futures that have failed
// and messages. Package mpicx sets it.
var Left func(f func(rank int, what []string)) any

// Doing returns what mpicx.Comm.Diagnose says of the rank of a *mpicx.Comm. Package mpicx sets it.
var Doing func(comm any) string

// Spares is how many spares a mpicx.Option asks for. Package mpicx sets it.
var Spares func(option any) int

// Happened tells who watches the rank of a *mpicx.Comm of an event there, and what it was about. Package
// mpicx sets it.
var Happened func(comm any, kind timeline.Kind, text string)

// Bare takes the error channel out of the Waits on a *mpicx.Comm, to measure what
// it costs them. Package mpicx sets it.
var Bare func(comm any)

// Abort corrupts a *mpicx.Comm as if its rank had unwound with err, dead or not,
// so that every Wait on it ends. Package mpicx sets it.
var Abort func(comm any, err error)

// Processes is how many a launcher has started, of which this is one; 0: none has.
// Package mpicx sets it.
var Processes = func() int { return 0 }

// Underway is how many requests MPI has of this process, and buffers pinned for it,
// but for those that take what comes. Package mpicx sets it.
var Underway = func() int { return 0 }

// Break has MPI fail in this process, for good. Package mpicx sets it.
var Break func(err error)
