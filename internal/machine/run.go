//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package machine

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/mpicx/go-mpicx/internal/diagnosis"
)

// An Outcome says how a process has ended.
type Outcome struct {
	State *os.ProcessState // nil: it was to be started later, and could not be

	why      string
	order    int  // its place in the order of all ends, from 0
	first    bool // no process had died before
	died     bool // it had not left the job, or others still needed it, and other processes were in it
	survived bool // others have continued without it
	asked    bool // a signal that Run has forwarded, to ask the job to end, has ended it
	killed   bool // Run has killed it
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
		outcomes: make([]Outcome, n), news: make([]string, n), oomKills: oomKills(oomFiles()...)}
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
			r.pass(s.(syscall.Signal))
		case <-r.grace:
			r.kill(fmt.Sprintf("%v after %s", j.Grace, nameOf(r.stop)))
		case <-r.deadline:
			if r.hurried {
				r.kill(fmt.Sprintf("%v after a death", 2*patience))
				break
			}
			r.hurry()
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
	hurried   bool             // they have got a SIGTERM for that

	stop    syscall.Signal   // the first SIGINT or SIGTERM that was passed on; 0: none
	stopped time.Time        // when
	grace   <-chan time.Time // for the processes to end, after stop
	killed  bool             // those that were left have got a SIGKILL

	oomKills int // those by the kernel, for memory, that are known
}

// again is how much later a second SIGINT or SIGTERM has to come to count as one. A batch system
// may send the first to all processes, to which the launcher passes it on as well.
const again = time.Second

// pass passes on a signal to the processes, and to those that they have started.
func (r *run) pass(s syscall.Signal) {
	if stops := s == syscall.SIGINT || s == syscall.SIGTERM; stops && r.Grace > 0 {
		switch {
		case r.killed:
			return
		case r.stop == 0:
			r.stop, r.stopped, r.grace = s, time.Now(), time.After(r.Grace)
		case time.Since(r.stopped) > again:
			r.kill("at a second " + nameOf(s))
			return
		default: // the same request, which could come to a process that has stopped and is about to exit
			return
		}
	}
	if slices.Contains(ending, os.Signal(s)) {
		r.ending = append(r.ending, s)
		r.roster.ending.Store(1)
		defer r.roster.ending.Store(2)
	}
	signalAll(r.running, s)
	if s == syscall.SIGTSTP { // which stops them; SIGCONT continues the launcher and them
		_ = syscall.Kill(syscall.Getpid(), syscall.SIGSTOP)
	}
}

// hurry asks the processes to end, which have not after a death, and gives them some more time.
func (r *run) hurry() {
	r.hurried, r.deadline = true, time.After(patience)
	signalAll(r.running, syscall.SIGTERM)
}

// kill kills the processes that are left, and the processes that they have started, after saying
// where they hang.
func (r *run) kill(when string) {
	left := maps.Clone(r.running)
	r.killed, r.grace, r.deadline = true, nil, nil
	if where := r.where(left); where != "" {
		r.say(fmt.Sprintf("still there %s, and killed: %s", when, where))
	}
	signalAll(r.running, syscall.SIGKILL) // the others have ended since: see noteEnd
}

// AnswerTime is how long processes have to tell where they are before they are killed. Only tests
// change it.
var AnswerTime = 2 * time.Second

// where says where those of the processes hang that do not end by themselves meanwhile, by groups.
func (r *run) where(left map[int]*os.Process) string {
	begin, ticks := time.Now(), make(map[int]time.Duration)
	for rank, p := range left {
		_, ticks[rank] = activity(p.Pid)
	}
	if r.roster.asked.Store(1); r.Ask != 0 {
		signalAll(left, r.Ask)
	}
	look := time.NewTicker(lookOut)
	defer look.Stop()
	hangs := func(rank int) bool { return r.running[rank] != nil || r.outcomes[rank].killed }
	told := func() bool {
		for rank := range left {
			if hangs(rank) && r.roster.places[rank].told() == "" && r.answers(rank, left[rank].Pid) {
				return false
			}
		}
		return true
	}
	for !told() && time.Since(begin) < AnswerTime {
		select {
		case e := <-r.ends:
			r.noteEnd(e)
		case <-look.C:
		}
	}
	at := make(map[int]string)
	for rank, p := range left {
		if hangs(rank) {
			at[rank] = cmp.Or(r.roster.places[rank].told(), r.seems(rank, p.Pid, ticks[rank], time.Since(begin)))
		}
	}
	var groups []string
	for _, g := range diagnosis.Grouped(at) {
		groups = append(groups, diagnosis.Name(g.Ranks)+": "+g.Text)
	}
	return strings.Join(groups, "; ")
}

// answers says whether a process may still tell where it is: it is in Run, and not stopped.
func (r *run) answers(rank, pid int) bool {
	state, _ := activity(pid)
	in := r.roster.state(rank)
	return r.Ask != 0 && (in == fragile || in == mortal) && state != 'T' && state != 't'
}

// seems says what a process seems to do that has not told where it is. It had used some time of
// processors at a time before now.
func (r *run) seems(rank, pid int, used, before time.Duration) string {
	state, now := activity(pid)
	does := "hanging"
	switch {
	case state == 'T' || state == 't':
		return "stopped"
	case now-used > before/4:
		does = "computing"
	case state == 'D':
		does = "in the system (state D)"
	case state != 0:
		does = "waiting"
	}
	switch r.roster.state(rank) {
	case fragile, mortal:
		return does + ", no answer"
	case left:
		return does + ", Run has ended"
	}
	return does + ", not in Run"
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
			why := fmt.Sprintf("can't be started: %v", err)
			r.news[rank] = fmt.Sprintf("rank %d %s", rank, why)
			r.say(r.news[rank])
			r.note(rank, nil, why)
		}
	}
}

// note notes the end of a process, and returns the state that it was in. It tells the others why
// the process has ended before it reports the end to them.
func (r *run) note(rank int, state *os.ProcessState, why string) state {
	r.roster.ends[rank].tell(why)
	was := r.ended(rank)
	r.outcomes[rank] = Outcome{State: state, why: why, order: r.order, asked: slices.Contains(r.ending, endedBy(state)), was: was}
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
	if r.killed && e.state != nil { // what it has started may not end with it
		_ = syscall.Kill(-e.state.Pid(), syscall.SIGKILL)
	}
	defer r.roster.processes[e.rank].noted.Store(1)
	was := r.note(e.rank, e.state, r.why(e.state))
	o := &r.outcomes[e.rank]
	o.killed = r.killed && (o.endedBy(syscall.SIGKILL) || o.endedBy(r.Ask)) // Ask may end what is no Go program
	switch {
	case was == left || r.all() == 1:
	case r.roster.any(mortal):
		if !r.isPlain(o) {
			r.news[e.rank] = r.death(e.rank)
		}
	case r.roster.any(fragile):
		if !r.saidFirst && r.roster.isFirst(e.rank) {
			if r.saidFirst = true; !r.isPlain(o) {
				r.news[e.rank] = r.death(e.rank) + needsAll
			}
		}
		if lostReader(o) && !r.hurried { // nobody reads what the others would say of this
			r.roster.ending.Store(1)
			r.hurry()
			r.roster.ending.Store(2)
		} else if r.deadline == nil && !r.killed {
			r.deadline = time.After(patience)
		}
	}
}

func (r *run) death(rank int) string {
	return fmt.Sprintf("rank %d has died: %s", rank, r.outcomes[rank].why)
}

const needsAll = "; the others can't continue without it"

// isPlain says whether the user knows why a process has ended, or is told otherwise: Run has passed
// on the signal, or sent it, or nobody reads its output any more.
func (r *run) isPlain(o *Outcome) bool {
	return o.asked || o.killed || lostReader(o)
}

// lostReader says whether a process has ended because what reads the job's output has ended, such
// as head.
func lostReader(o *Outcome) bool {
	for _, f := range []*os.File{os.Stdout, os.Stderr} {
		if info, err := f.Stat(); err == nil && info.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0 && o.endedBy(syscall.SIGPIPE) {
			return true
		}
	}
	return false
}

// judge returns the outcomes, now that all processes have ended, and says which deaths were not
// reported.
func (r *run) judge() []Outcome {
	outcomes := r.outcomes[:r.started]
	var asked diagnosis.Groups
	for rank := range outcomes {
		o := &outcomes[rank]
		o.died = (o.was != left || r.roster.died(rank)) && r.roster.any(mortal, fragile, left)
		o.survived = o.died && r.roster.any(left) && !r.roster.any(fragile) && r.roster.survives.Load() > 0
		o.first = o.died && r.roster.isFirst(rank)
		if o.asked {
			asked.Add(rank, nameOf(endedBy(o.State)))
		}
		switch {
		case r.news[rank] != "" || r.isPlain(o):
		case o.survived: // no process had come when it died, or it had left
			r.say(r.death(rank))
		case o.first && !r.saidFirst && o.was == left:
			r.say(r.death(rank) + needsAll)
		}
	}
	for _, g := range asked.All {
		if r.all() > 1 {
			r.say(fmt.Sprintf("%s has ended %s", g.Text, diagnosis.Name(g.Ranks)))
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
// 0, or with 75, if there is one: a job that has stopped, and can be continued later, ends with 75.
// The process whose death the others saw first counts as the first, no matter in which order the
// system reports the ends.
func Status(outcomes []Outcome) int {
	status, order := 0, 3*len(outcomes)
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
		if s == tempFail {
			o.order += 2 * len(outcomes) // after all others
		}
		if s != 0 && o.order < order && !o.survived {
			status, order = s, o.order
		}
	}
	return status
}

// tempFail is the status of a process that has stopped to be started again: EX_TEMPFAIL.
const tempFail = 75

// Status returns the exit status of the process, as a shell reports it.
func (o Outcome) Status() int {
	if o.State == nil { // it could not be started
		return 126
	}
	if o.killed {
		return 128 + int(syscall.SIGKILL)
	}
	if s := endedBy(o.State); s != nil {
		return 128 + int(s.(syscall.Signal))
	}
	return o.State.ExitCode()
}

func (o Outcome) endedBy(s syscall.Signal) bool { return endedBy(o.State) == os.Signal(s) }

// nameOf returns the name of one of the signals that end a job.
func nameOf(s os.Signal) string {
	return map[os.Signal]string{syscall.SIGHUP: "SIGHUP", syscall.SIGINT: "SIGINT", syscall.SIGQUIT: "SIGQUIT", syscall.SIGTERM: "SIGTERM"}[s]
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
