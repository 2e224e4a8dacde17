package hook

import (
	"errors"
	"io"

	"github.com/mpicx/go-mpicx/internal/timeline"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// ErrUnseen is the failure of a rank whose process has died, where the others do not survive that.
var ErrUnseen = errors.New("its process has died; with -tags ulfm the others could continue without it")

// Die marks the rank of a *mpicx.Comm as dead: from now on its operations reach no other rank.
// Package mpicx sets it.
var Die func(comm any)

// Mortal says whether peers, or a launcher, would see the rank of a *mpicx.Comm die. Package
// mpicx sets it.
var Mortal func(comm any) bool

// Machine returns the number of the machine on which the rank of a *mpicx.Comm runs, the same for all ranks
// there. Package mpicx sets it.
var Machine func(comm any) int

// Dead says whether the rank of a *mpicx.Comm has died. Package mpicx sets it.
var Dead func(comm any) bool

// Backend returns a mpicx.Option that chooses an error backend by its name, for tests that
// compare the two. Package mpicx sets it.
var Backend func(name string) any

// Transport returns a mpicx.Option that puts a layer between communicators and their transport,
// to count messages or to disturb them. Package mpicx sets it.
var Transport func(wrap func(transport.Comm) transport.Comm) any

// Progress returns a text that changes when the rank of a *mpicx.Comm begins or ends an
// operation. Package mpicx sets it.
var Progress func(comm any) string

// Blocked returns what mpicx.Comm.Blocked returns, for all communicators of its rank. Package
// mpicx sets it.
var Blocked func(comm any) []string

// DiagnosesTo returns a mpicx.Option that makes Run write its report of a hang to w. Package
// mpicx sets it.
var DiagnosesTo func(w io.Writer) any

// Held returns how many requests of a *mpicx.Comm's rank have not ended, and how many messages
// to the rank wait for receives. Package mpicx sets it.
var Held func(comm any) (requests, messages int)

// Left returns a mpicx.Option that makes Run call f at its end, if none of its ranks has
// failed, with what the program of each rank of this process has left behind: futures that have
// failed, and messages. Package mpicx sets it.
var Left func(f func(rank int, what []string)) any

// Doing returns what mpicx.Comm.Diagnose reports about the rank of a *mpicx.Comm. Package mpicx
// sets it.
var Doing func(comm any) string

// Spares returns the number of spares that a mpicx.Option requests. Package mpicx sets it.
var Spares func(option any) int

// Respawns says whether a mpicx.Option is WithRespawn. Package mpicx sets it.
var Respawns func(option any) bool

// Fresh is the greatest number of fresh goroutine ranks of a job.
const Fresh = 1000

// MostFresh returns a mpicx.Option that replaces Fresh. Package mpicx sets it.
var MostFresh func(n int) any

// Happened reports an event at the rank of a *mpicx.Comm to the watchers of the rank, with a
// text that describes it. Package mpicx sets it.
var Happened func(comm any, kind timeline.Kind, text string)

// Bare takes the error channel out of the Waits on a *mpicx.Comm, to measure its cost. Package
// mpicx sets it.
var Bare func(comm any)

// Abort corrupts a *mpicx.Comm as if its rank had unwound with err, even if the rank is dead,
// so that every Wait on it ends. Package mpicx sets it.
var Abort func(comm any, err error)

// Processes returns how many processes a launcher has started, including this one; 0: there is
// no launcher. Package mpicx sets it.
var Processes = func() int { return 0 }

// Underway returns how many requests of this process MPI has, and how many buffers are pinned
// for it, except those that wait for packets. Package mpicx sets it.
var Underway = func() int { return 0 }

// Break makes MPI fail in this process, for good. Package mpicx sets it.
var Break func(err error)
