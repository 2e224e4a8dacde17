//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package machine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/mpicx/go-mpicx/internal/peers"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/node"
)

// Begin begins this process's part in a job. It waits for all processes until ctx ends.
func Begin(ctx context.Context, p *Place, mortal bool) (*node.Job, error) {
	return node.Begin(&fabric{Place: *p, ctx: ctx}, node.Options{Mortal: mortal})
}

// joined is this process's part in its job.
var joined atomic.Pointer[fabric]

// Tell says whether the launcher, before it kills this process, has asked where it is. If so, Tell
// tells it what here returns.
func Tell(here func() string) bool {
	f := joined.Load()
	if f == nil || f.roster.asked.Load() == 0 {
		return false
	}
	f.roster.places[f.Rank].tell(here())
	return true
}

// Ending says whether the launcher has sent all processes a signal that ends the job. For some time
// it waits until the launcher has seen the deaths that the processes have: one may be its reason.
func Ending(patience time.Duration) bool {
	f := joined.Load()
	if f == nil {
		return false
	}
	end := time.Now().Add(patience)
	wait := func(until func() bool) {
		for !until() && time.Now().Before(end) {
			time.Sleep(time.Millisecond)
		}
	}
	for _, r := range f.roster.dead() {
		wait(func() bool { return f.roster.processes[r].noted.Load() > 0 })
	}
	if f.roster.ending.Load() == 0 {
		return false
	}
	wait(func() bool { return f.roster.ending.Load() > 1 })
	return true
}

// A fabric is the fabric of a job on one machine. It sees processes end. On the roster the
// processes record that they have left, and the deaths that they have seen. So all processes learn
// of the deaths in the same order.
type fabric struct {
	Place
	ctx    context.Context // of Begin
	wake   func()          // of Start
	roster roster
	peers  *peers.Peers
	asked  uint32        // deaths on the roster at the last call of Failed
	over   chan struct{} // nil unless the process was started later: closed when it does not watch its launcher any more
}

func (f *fabric) Start(isMortal bool, wake func()) (node.Start, error) {
	f.wake = wake
	mine := fragile
	if isMortal {
		mine = mortal
	}
	memory, err := node.MapFile(f.memory(), memorySize(f.all()))
	if errors.Is(err, fs.ErrNotExist) {
		return node.Start{}, f.refusal("has begun or is over, and this process is not in it")
	} else if err != nil {
		return node.Start{}, fmt.Errorf("the memory of mpicxrun's job: %w", err)
	}
	f.roster = rosterOf(memory, f.all())
	if isMortal {
		f.roster.survives.Store(1)
	}
	if !f.roster.claim(f.Rank, mine) {
		return node.Start{}, f.refusal("has another process as this rank")
	}
	if f.isLater() {
		if err := f.watchLauncher(); err != nil {
			return node.Start{}, err
		}
	} else {
		if f.peers, err = peers.Join(f.ctx, f.sockets(), f.Rank, f.size+1); err != nil {
			return node.Start{}, err
		}
		_ = os.Remove(f.dir) // succeeds for the last process, when the directory is empty
		f.peers.Watch(f.end)
	}
	for r := range f.all() {
		if s := f.roster.state(r); s == fragile && isMortal || s == mortal && !isMortal {
			f.Desert()
			return node.Start{}, fmt.Errorf("rank %d has another error backend than this one, %d: build all with -tags ulfm, or none", r, f.Rank)
		}
	}
	joined.Store(f)
	var marks []*uint32
	if f.peers != nil {
		marks = f.peers.Marks()
	}
	near := make([]int, f.all())
	for r := range near {
		near[r] = r
	}
	return node.Start{Name: "node", Rank: f.Rank, Size: f.all(), Crowded: f.size > runtime.NumCPU(),
		Machines: make([]int, f.all()), Near: near, Memory: memory[rosterSize(f.all()):], Later: f.later, Wakes: true, Marks: marks, Reason: f.reason}, nil
}

// reason returns how a process has ended, or "". The launcher learns it when the system has freed
// the process's memory, later than the processes see the death.
func (f *fabric) reason(ctx context.Context, process int) string {
	how := &f.roster.ends[process]
	for f.roster.died(process) && how.told() == "" && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	return how.told()
}

// watchLauncher ends this process, which was started later, when the launcher ends: the lock of
// the job's memory is free then. The launcher sees the ends of all processes, and this one sees
// them on the roster.
func (f *fabric) watchLauncher() error {
	memory, err := os.Open(f.memory())
	if err != nil {
		return err
	}
	f.over = make(chan struct{})
	go func() {
		defer func() { _ = memory.Close() }()
		look := time.NewTicker(launcherPeriod) // a goroutine that waits for the lock could not be stopped
		defer look.Stop()
		for {
			select {
			case <-f.over:
				return
			case <-look.C:
			}
			if syscall.Flock(int(memory.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) == nil {
				f.end(f.size)
				return
			}
		}
	}()
	return nil
}

// launcherPeriod is how often a process that was started later looks whether its launcher lives.
// On Linux the system ends it at once.
const launcherPeriod = 100 * time.Millisecond

// Respawn has the launcher start a process, and all before it, if they were not started.
func (f *fabric) Respawn(process int) { f.roster.begin(process + 1) }

// Begun returns the number of processes that were started or are to be.
func (f *fabric) Begun() int { return f.roster.begins() }

// refusal returns the error of a process that cannot have the place that its environment gives it.
func (f *fabric) refusal(why string) error {
	return &transport.LibraryError{Call: "mpicxrun", Text: fmt.Sprintf(
		"rank %d of %s=%s: that job %s; start a program from a rank without %[2]s in its environment, unless it replaces that rank", f.Rank, envJob, f.dir, why)}
}

// end notes the end of a process. If the launcher ends, the job ends. A process that has left
// passes messages on until all have left, so until then its end is a death.
func (f *fabric) end(index int) {
	switch {
	case index == f.size:
		_ = os.RemoveAll(f.dir)
		fmt.Fprintf(os.Stderr, "mpicx: rank %d: mpicxrun has ended, and so does its job\n", f.Rank)
		f.Kill()
	case !f.roster.over():
		f.roster.seen(index)
		f.wake()
	}
}

func (f *fabric) Poll(*node.Sink, int) (happened, died bool) {
	if f.peers != nil {
		f.peers.Look()
	}
	return false, f.roster.deaths.Load() > f.asked
}

func (f *fabric) Failed() ([]int, error) {
	f.asked = f.roster.deaths.Load() // not the length of the list: who noted a death may have died before it was counted
	return f.roster.dead(), nil
}

// Desert ends this process's part while the others have theirs.
func (f *fabric) Desert() { _ = f.Finalize(true) }

// errNowhere: a job on one machine sends nothing to other machines.
var errNowhere = errors.New("a process that is not on this machine")

func (*fabric) Send(int, node.Header, []byte) error                      { return errNowhere }
func (*fabric) Transfer(bool, int, uint32, []byte, uint64) (bool, error) { return false, errNowhere }
func (*fabric) Requests() int                                            { return 0 }
func (*fabric) Pressing() bool                                           { return false }

func (f *fabric) Leave(bool) error {
	f.roster.set(f.Rank, left)
	return nil
}

func (f *fabric) EverybodyLeft() (bool, error) { return f.roster.over(), nil }

func (f *fabric) Finalize(bool) error {
	if f.over != nil {
		close(f.over)
		return nil
	}
	return f.peers.Close()
}

func (*fabric) Kill() {
	_ = syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
	os.Exit(128 + int(syscall.SIGKILL)) // the first process of a PID namespace does not get the signal
}
