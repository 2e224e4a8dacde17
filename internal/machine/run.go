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
	State *os.ProcessState // nil: it was to be started later, and could not be

	order    int  // its place in the order of all ends, from 0
	first    bool // no process had died before
	died     bool // it had not left the job, or others still needed it, and other processes were in it
	survived bool // others have continued without it
	asked    bool // a signal that Run has forwarded, to ask the job to end, has ended it
	was      state
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
	n := j.all()
	r := run{Job: j, command: command, say: say, ends: make(chan end, 2*n), running: make(map[int]*os.Process),
		outcomes: make([]Outcome, n), news: make([]string, n), next: syscall.SIGTERM}
	for rank := range j.size {
		if err := r.start(); err != nil {
			r.abort()
			return []Outcome{{}}, fmt.Errorf("rank %d can't be started: %w", rank, err)
		}
	}
	ready := j.ready
	var asked <-chan time.Time
	if j.later > 0 {
		ticker := time.NewTicker(lookOut)
		defer ticker.Stop()
		asked = ticker.C
	}
	for r.unread > 0 {
		select {
		case <-ready:
			if ready = nil; j.err != nil {
				r.abort()
				return nil, j.err
			}
		case <-asked:
			r.startLater()
		case s := <-signals:
			signalAll(r.running, s.(syscall.Signal)) // also to the processes that they have started
			if s == syscall.SIGTSTP {                // which stops them; SIGCONT continues the launcher and them
				_ = syscall.Kill(syscall.Getpid(), syscall.SIGSTOP)
			}
			if slices.Contains(ending, s) {
				r.ending = append(r.ending, s)
			}
		case <-r.deadline:
			signalAll(r.running, r.next)
			r.next, r.deadline = syscall.SIGKILL, time.After(patience)
		case e := <-r.ends:
			r.noteEnd(e)
		}
	}
	return r.judge(), nil
}

// A run is a call of Run.
type run struct {
	*Job
	command func(rank int) *exec.Cmd
	say     func(text string)

	ends     chan end
	running  map[int]*os.Process
	unread   int         // the processes that are running, or whose output is
	started  int         // of the ranks: their processes were started, or could not be
	order    int         // the order of the next Outcome
	ending   []os.Signal // they have asked the job to end, in order
	outcomes []Outcome
	news     []string // what is said of a rank: after its output, or at once if it could not be started
	// saidFirst says that one of news is the death that ends a job which does not survive deaths.
	saidFirst bool
	deadline  <-chan time.Time // for the others to end, after a death
	next      syscall.Signal   // what they get then
}

// start starts the process of the next rank.
func (r *run) start() error {
	rank := r.started
	c := r.command(rank)
	r.started++
	if len(r.ending) > 0 {
		return fmt.Errorf("the job was asked to end (%v)", r.ending[0])
	}
	if c.Env == nil {
		c.Env = os.Environ()
	}
	for name, value := range r.of(rank).Variables() {
		c.Env = append(c.Env, name+"="+value) // the last one counts
	}
	c.SysProcAttr = attributes()
	if err := c.Start(); errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSYS) {
		return fmt.Errorf("setpgid, prctl or execve (for a process group that ends with mpicxrun): %w", err)
	} else if err != nil {
		return err
	}
	r.running[rank] = c.Process
	r.unread++
	if r.Started != nil {
		r.Started(rank, c.Process.Pid)
	}
	go func() {
		state, _ := c.Process.Wait() // its error is in the state
		r.ends <- end{rank: rank, state: state}
		_ = c.Wait() // for the end of its output: a child of the process may have it open
		r.ends <- end{rank: rank, read: true}
	}()
	return nil
}

// abort kills all processes, and waits for their ends.
func (r *run) abort() {
	signalAll(r.running, syscall.SIGKILL)
	for r.unread > 0 {
		if (<-r.ends).read {
			r.unread--
		}
	}
}

// startLater starts the processes that others have asked for.
func (r *run) startLater() {
	for len(r.running) > 0 && r.started < r.roster.begins() {
		rank := r.started
		if err := r.start(); err != nil {
			r.news[rank] = fmt.Sprintf("rank %d can't be started: %v", rank, err)
			r.say(r.news[rank])
			r.note(rank, nil)
		}
	}
}

// note notes the end of a process, and returns the state that it was in.
func (r *run) note(rank int, state *os.ProcessState) state {
	was := r.ended(rank)
	r.outcomes[rank] = Outcome{State: state, order: r.order, asked: slices.Contains(r.ending, endedBy(state)), was: was}
	r.order++
	return was
}

// noteEnd notes the end of a process or of its output.
func (r *run) noteEnd(e end) {
	if e.read {
		r.unread--
		if r.news[e.rank] != "" {
			r.say(r.news[e.rank])
		}
		return
	}
	delete(r.running, e.rank)
	was := r.note(e.rank, e.state)
	switch {
	case was == left || r.all() == 1:
	case r.roster.any(mortal):
		r.news[e.rank] = fmt.Sprintf("rank %d has died: %v", e.rank, e.state)
	case r.roster.any(fragile):
		if !r.saidFirst && r.roster.isFirst(e.rank) {
			r.saidFirst = true
			r.news[e.rank] = fmt.Sprintf("rank %d has died: %v; the others can't continue without it", e.rank, e.state)
		}
		if r.deadline == nil {
			r.deadline = time.After(patience)
		}
	}
}

// judge returns the outcomes, now that all processes have ended, and says which deaths were not
// reported.
func (r *run) judge() []Outcome {
	outcomes := r.outcomes[:r.started]
	for rank := range outcomes {
		o := &outcomes[rank]
		o.died = (o.was != left || r.roster.died(rank)) && r.roster.any(mortal, fragile, left)
		o.survived = o.died && r.roster.any(left) && !r.roster.any(fragile) && r.roster.survives.Load() > 0
		o.first = o.died && r.roster.isFirst(rank)
		switch {
		case r.news[rank] != "":
		case o.survived: // no process had come when it died, or it had left
			r.say(fmt.Sprintf("rank %d has died: %v", rank, o.State))
		case o.first && !r.saidFirst && o.was == left:
			r.say(fmt.Sprintf("rank %d has died: %v; the others can't continue without it", rank, o.State))
		}
	}
	return outcomes
}

// ending are the signals that ask a job to end. A process that was started afterwards would not
// have got them, and could continue the job.
var ending = []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM}

func signalAll(running map[int]*os.Process, s syscall.Signal) {
	for _, p := range running {
		_ = syscall.Kill(-p.Pid, s)
	}
}

// Signals returns a channel of the signals to this process, except those that it ignores.
func Signals() chan os.Signal {
	signals := make(chan os.Signal, 16)
	for _, s := range append(slices.Clip(ending), syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGTSTP, syscall.SIGCONT) {
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
		if o.asked {
			return s
		}
		if s == 0 && o.died {
			s = 1
		}
		if o.first {
			o.order -= len(outcomes)
		}
		if s != 0 && o.order < order && !o.survived {
			status, order = s, o.order
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
