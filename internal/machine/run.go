//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package machine

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"syscall"
	"time"
)

// An Outcome says how a process has ended.
type Outcome struct {
	State    *os.ProcessState // nil: it was to be started later, and could not be
	Order    int              // its place in the order of all ends, from 0
	First    bool             // no process had died before
	Died     bool             // it had not left the job, or others still needed it, and other processes were in it
	Survived bool             // others have continued without it
	Asked    bool             // a signal that Run has forwarded, to ask the job to end, has ended it

	was state
}

// lookOut is the time between two looks for processes that are to be started.
const lookOut = 5 * time.Millisecond

// patience is the time that the processes of a job that does not survive deaths get, after a death,
// to end by themselves. They get the same time again after SIGTERM.
const patience = 2 * time.Second

// An end is the end of a process, or the end of its output, which comes later.
type end struct {
	rank  int
	state *os.ProcessState
	read  bool // all output has been read
}

// Run starts a process for each rank, by the command that the function returns, and waits until
// they have ended. It forwards signals to them, and calls say with what happens. A process can have
// others started later, whose Outcomes follow. If one of the first can't be started, Run kills the
// others, and returns an error and an Outcome. If there can be no job, it returns no Outcome.
func (j *Job) Run(command func(rank int) *exec.Cmd, signals <-chan os.Signal, say func(text string)) ([]Outcome, error) {
	runtime.LockOSThread() // the processes end with it
	defer runtime.UnlockOSThread()
	ends := make(chan end, 2*j.all())
	running := make(map[int]*os.Process)
	unread := 0 // the processes that are running, or whose output is
	var commands []*exec.Cmd
	var ending []os.Signal // they have asked the job to end, in order
	start := func() error {
		r := len(commands)
		c := command(r)
		commands = append(commands, c)
		if len(ending) > 0 {
			return fmt.Errorf("the job was asked to end (%v)", ending[0])
		}
		if c.Env == nil {
			c.Env = os.Environ()
		}
		for name, value := range j.Of(r).Variables() {
			c.Env = append(c.Env, name+"="+value) // the last one counts
		}
		c.SysProcAttr = attributes()
		if err := c.Start(); errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSYS) {
			return fmt.Errorf("setpgid, prctl or execve (for a process group that ends with mpicxrun): %w", err)
		} else if err != nil {
			return err
		}
		running[r] = c.Process
		unread++
		if j.Started != nil {
			j.Started(r, c.Process.Pid)
		}
		go func() {
			state, _ := c.Process.Wait() // its error is in the state
			ends <- end{rank: r, state: state}
			_ = c.Wait() // for the end of its output: a child of the process may have it open
			ends <- end{rank: r, read: true}
		}()
		return nil
	}
	abort := func() {
		signalAll(running, syscall.SIGKILL)
		for unread > 0 {
			if (<-ends).read {
				unread--
			}
		}
	}
	for r := range j.Size {
		if err := start(); err != nil {
			abort()
			return []Outcome{{}}, fmt.Errorf("rank %d can't be started: %w", r, err)
		}
	}
	ready := j.ready
	var asked <-chan time.Time
	if j.Later > 0 {
		ticker := time.NewTicker(lookOut)
		defer ticker.Stop()
		asked = ticker.C
	}
	outcomes := make([]Outcome, j.all())
	var deadline <-chan time.Time   // for the others to end, after a death
	said := make([]bool, j.all())   // the ranks whose deaths were reported
	news := make([]string, j.all()) // what is to be said of a rank after its output
	saidFirst := false
	next := syscall.SIGTERM
	for order := 0; unread > 0; {
		select {
		case <-ready:
			if ready = nil; j.err != nil {
				abort()
				return nil, j.err
			}
		case <-asked:
			for len(running) > 0 && len(commands) < j.board.begun() {
				r := len(commands)
				if err := start(); err != nil {
					said[r] = true
					say(fmt.Sprintf("rank %d can't be started: %v", r, err))
					outcomes[r] = Outcome{Order: order, was: j.ended(r)}
					order++
				}
			}
		case s := <-signals:
			forward(running, s.(syscall.Signal))
			if asksToEnd(s) {
				ending = append(ending, s)
			}
		case <-deadline:
			signalAll(running, next)
			next, deadline = syscall.SIGKILL, time.After(patience)
		case e := <-ends:
			r := e.rank
			if e.read {
				unread--
				if news[r] != "" {
					say(news[r])
				}
				continue
			}
			delete(running, r)
			outcomes[r] = Outcome{State: e.state, Order: order, Asked: slices.Contains(ending, endedBy(e.state)), was: j.ended(r)}
			order++
			switch {
			case outcomes[r].was == left || j.all() == 1:
			case j.any(mortal):
				said[r] = true
				news[r] = fmt.Sprintf("rank %d has died: %v", r, e.state)
			case j.any(fragile):
				if !saidFirst && j.isFirst(r) {
					saidFirst = true
					news[r] = fmt.Sprintf("rank %d has died: %v; the others can't continue without it", r, e.state)
				}
				if deadline == nil {
					deadline = time.After(patience)
				}
			}
		}
	}
	outcomes = outcomes[:len(commands)]
	for r := range outcomes {
		o := &outcomes[r]
		o.Died = (o.was != left || j.board.died(r)) && (j.any(mortal) || j.any(fragile) || j.any(left))
		o.Survived = o.Died && j.any(left) && !j.any(fragile) && j.board.survives()
		o.First = o.Died && j.isFirst(r)
		switch {
		case said[r]:
		case o.Survived: // no process had come when it died, or it had left
			say(fmt.Sprintf("rank %d has died: %v", r, o.State))
		case o.First && !saidFirst && o.was == left:
			say(fmt.Sprintf("rank %d has died: %v; the others can't continue without it", r, o.State))
		}
	}
	return outcomes, nil
}

// forward passes a signal on to the processes, and to the processes that they have started. A
// signal that stops them stops the launcher too; the signal that continues the launcher continues
// them too.
func forward(running map[int]*os.Process, s syscall.Signal) {
	signalAll(running, s)
	if s == syscall.SIGTSTP {
		_ = syscall.Kill(syscall.Getpid(), syscall.SIGSTOP)
	}
}

// asksToEnd says whether the signal asks a job to end. A process that was started afterwards would
// not have got it, and could continue the job.
func asksToEnd(s os.Signal) bool {
	return slices.Contains([]os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM}, s)
}

func signalAll(running map[int]*os.Process, s syscall.Signal) {
	for _, p := range running {
		_ = syscall.Kill(-p.Pid, s)
	}
}

// Signals returns a channel of the signals to this process, except those that it ignores.
func Signals() chan os.Signal {
	signals := make(chan os.Signal, 16)
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGTSTP, syscall.SIGCONT} {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	return signals
}

// Status returns the exit status of a job, as a shell reports it: 128 plus the number of the signal
// for a process that a signal has ended. If a signal that asked the job to end has ended a process,
// it is the status of that process: other processes may learn of the death before the signal comes
// to them, and return. Otherwise it is 0 if all processes have ended with 0, or all that have
// survived the deaths of others. Else it is the status of the first process that has not ended with
// 0. The process whose death the others saw first counts as the first, no matter in which order the
// system reports the ends.
func Status(outcomes []Outcome) int {
	status, order := 0, len(outcomes)
	for _, o := range outcomes {
		s := o.Status()
		if o.Asked {
			return s
		}
		if s == 0 && o.Died {
			s = 1
		}
		if o.First {
			o.Order -= len(outcomes)
		}
		if s != 0 && o.Order < order && !o.Survived {
			status, order = s, o.Order
		}
	}
	return status
}

// Status returns the exit status of the process, as a shell reports it.
func (o Outcome) Status() int {
	if o.State == nil { // it could not be started
		return 126
	}
	if s := endedBy(o.State); s != nil {
		return 128 + int(s.(syscall.Signal))
	}
	return o.State.ExitCode()
}

// endedBy returns the signal that has ended a process, or nil.
func endedBy(state *os.ProcessState) os.Signal {
	if state == nil {
		return nil
	}
	if w, ok := state.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return w.Signal()
	}
	return nil
}
