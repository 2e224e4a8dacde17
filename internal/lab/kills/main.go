//go:build unix

package main

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	if dir := os.Getenv(envDir); dir != "" {
		if err := live(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	var d driver
	flag.DurationVar(&d.length, "for", time.Minute, "how long to go on")
	flag.Uint64Var(&d.seed, "seed", uint64(time.Now().UnixNano()), "of the first job; the next has the next")
	flag.IntVar(&d.jobs, "jobs", 0, "how many jobs at most; 0: as many as there is time for")
	flag.StringVar(&d.place, "place", "", "where all ends are, instead of everywhere: "+strings.Join(places, ", "))
	flag.StringVar(&d.way, "way", "", "how all are, instead of in all ways: "+strings.Join(ways, ", "))
	flag.IntVar(&d.n, "n", 0, "how many processes a job has; 0: 4 to 6")
	flag.Parse()
	if d.launcher = flag.Args(); len(d.launcher) == 0 {
		fmt.Fprintln(os.Stderr, "expected a launcher's command: mpirun …")
		os.Exit(2)
	}
	if err := d.run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// driver runs jobs one after another.
type driver struct {
	length     time.Duration
	seed       uint64
	jobs       int
	place, way string
	n          int
	launcher   []string
}

// tally counts the results of the jobs.
type tally struct {
	jobs, ends, stops, noStart, hangs, launcher, late, wrong, splits, lost int
	told                                                                   []time.Duration // from an end until the last survivor gets the error
}

func (t *tally) String() string {
	return fmt.Sprintf("%d jobs, %d ends, %d stops: %d hangs, %d wrong values, %d splits, %d survivors lost; %d jobs had not begun, with %d deadlines missed, %d launchers hung when all processes were gone",
		t.jobs, t.ends, t.stops, t.hangs, t.wrong, t.splits, t.lost, t.noStart, t.late, t.launcher)
}

func (d *driver) run() error {
	var t tally
	for begin := time.Now(); time.Since(begin) < d.length && (d.jobs == 0 || t.jobs < d.jobs); d.seed++ {
		if err := d.job(&t); err != nil {
			return err
		}
	}
	fmt.Println(&t)
	if slices.Sort(t.told); len(t.told) > 0 {
		fmt.Printf("from an end, in jobs with one, to the error at the last survivor: median %v, %v to %v\n",
			t.told[len(t.told)/2], t.told[0], t.told[len(t.told)-1])
	}
	if t.hangs+t.late+t.wrong+t.splits+t.lost > 0 {
		return fmt.Errorf("failed")
	}
	return nil
}

// The longest time of a job, and of its launcher after all processes have ended.
const (
	limit   = 2 * time.Minute
	linger  = 10 * time.Second
	between = 100 * time.Millisecond // time between looks at its processes
)

type outcome int

const (
	ended outcome = iota
	hangs
	launcherHangs
)

// wait waits until a launcher has ended, or kills it after a time limit.
func (*driver) wait(launcher int, over <-chan struct{}) outcome {
	how := ended
	seen := time.Now() // when there were processes
	for begin := seen; how == ended; {
		select {
		case <-over:
			return how
		case <-time.After(between):
		}
		children := childrenOf(launcher)
		if len(children) > 0 {
			seen = time.Now()
		}
		switch {
		case time.Since(begin) > limit:
			how = hangs
			for _, p := range children {
				_ = syscall.Kill(p, syscall.SIGQUIT)
			}
			time.Sleep(time.Second) // for the processes to print their stacks
		case time.Since(seen) > linger:
			how = launcherHangs
		}
	}
	_ = syscall.Kill(-launcher, syscall.SIGKILL)
	<-over
	return how
}

// job runs one job and judges it.
func (d *driver) job(t *tally) error {
	rnd := rand.New(rand.NewPCG(d.seed, 1))
	n, rounds := 4+rnd.IntN(3), 7*(1+rnd.IntN(20))
	if d.n > 0 {
		n = d.n
	}
	var ends []end
	for i, r := range rnd.Perm(n)[:1+rnd.IntN(n-1)*rnd.IntN(2)] {
		e := newEnd(rnd, r, rounds)
		if d.place != "" {
			e.place = d.place
		}
		if e.place == "recover" && i == 0 { // a first death leaves nothing to recover from
			e.place = "work"
		}
		if d.way != "" {
			e.way = d.way
		}
		ends = append(ends, e)
	}
	dir, err := os.MkdirTemp("", "kills-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	self, err := os.Executable()
	if err != nil {
		return err
	}
	args := append(slices.Clone(d.launcher[1:]), "-n", fmt.Sprint(n), self)
	c := exec.Command(d.launcher[0], args...)
	c.Env = append(os.Environ(), envDir+"="+dir, envEnds+"="+strings.Trim(fmt.Sprint(ends), "[]"),
		fmt.Sprint(envRounds, "=", rounds), "MPICX_NODE="+[]string{"", "1", "2"}[rnd.IntN(3)], "GOTRACEBACK=none",
		"PRTE_MCA_state_base_error_non_zero_exit=0") // see package mpi; mpirun's own exit status then says nothing
	if rnd.IntN(2) == 0 {
		c.Env = append(c.Env, envReturn+"=1")
	}
	if spares := rnd.IntN(3); spares > 0 {
		c.Env = append(c.Env, fmt.Sprint(envSpares, "=", spares))
	}
	output, err := os.Create(filepath.Join(dir, "output"))
	if err != nil {
		return err
	}
	defer output.Close()
	c.Stdout, c.Stderr = output, output
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		return err
	}
	over := make(chan struct{})
	go func() {
		_ = c.Wait() // the processes' files say more
		close(over)
	}()
	outcome := d.wait(c.Process.Pid, over)
	t.jobs++
	verdict := judge(dir, n, ends, t)
	switch outcome {
	case hangs:
		t.hangs++
		verdict += " hang"
	case launcherHangs:
		t.launcher++
		verdict += " the launcher hangs"
	}
	if verdict != "" {
		fmt.Printf("-seed %d:%s: %d processes, ends %v, %v\n", d.seed, verdict, n, ends, c.Env[len(c.Env)-6:])
		for i := range n {
			show(fmt.Sprintf("process %d", i), filepath.Join(dir, fmt.Sprint(i)))
		}
		show("output", output.Name())
	}
	return nil
}

// judge reads the files that the processes have written.
func judge(dir string, n int, ends []end, t *tally) (verdict string) {
	victims := make(map[int]string)
	begun := false
	groups := make(map[string]bool)
	var missing, leftOver []int // of the second, spares
	starts := slices.ContainsFunc(ends, func(e end) bool { return e.place == "start" })
	notBegun := false
	for i := range n {
		b, _ := os.ReadFile(filepath.Join(dir, fmt.Sprint(i)))
		text := string(b)
		ended := strings.Contains(text, " ends ")
		switch {
		case ended:
			t.ends++
			victims[i] = text
		case starts && strings.Contains(text, " not begun after "):
			notBegun = true // at its deadline
		case strings.Contains(text, " left over: "):
			leftOver = append(leftOver, i)
		case !strings.Contains(text, " survived\n"):
			missing = append(missing, i)
		}
		if strings.Contains(text, " late: ") {
			t.late++
			verdict += " late"
		}
		if strings.Contains(text, " stops") {
			t.stops++
		}
		if strings.Contains(text, " wrong ") {
			t.wrong++
			verdict += " wrong"
		}
		for _, line := range strings.Split(text, "\n") {
			if _, members, ok := strings.Cut(line, " agreed "); ok {
				begun = true
				if !ended {
					groups[members] = true
				}
			}
		}
	}
	if len(groups) > 0 { // somebody that works is alive
		missing = append(missing, leftOver...)
	}
	if len(ends) == 1 && len(victims) == 1 {
		t.tell(dir, n)
	}
	if len(groups) > 1 {
		t.splits++
		verdict += " split"
	}
	if len(missing) > 0 && !begun && starts { // MPI_Init has aborted, because it survives no deaths
		missing, notBegun = nil, true
	}
	if notBegun {
		t.noStart++
	}
	if len(missing) > 0 {
		t.lost += len(missing)
		verdict += fmt.Sprintf(" lost %v", missing)
	}
	return verdict
}

// tell notes the time from an end until the last survivor got the error.
func (t *tally) tell(dir string, n int) {
	var end, last time.Time
	for i := range n {
		b, _ := os.ReadFile(filepath.Join(dir, fmt.Sprint(i)))
		for line := range strings.Lines(string(b)) {
			text, what, _ := strings.Cut(line, " ")
			at, err := time.Parse(noteTime, text)
			switch {
			case err != nil:
			case strings.HasPrefix(what, "ends "):
				end = at
			case strings.HasPrefix(what, "meets ") && (last.IsZero() || at.After(last)):
				last = at
			}
		}
	}
	if !last.IsZero() && !end.IsZero() && last.After(end) {
		t.told = append(t.told, last.Sub(end))
	}
}

func show(name, file string) {
	f, err := os.Open(file)
	if err != nil {
		fmt.Println(name, err)
		return
	}
	defer f.Close()
	b, _ := io.ReadAll(io.LimitReader(f, 1<<17))
	fmt.Printf("  %s:\n    %s\n", name, strings.ReplaceAll(strings.TrimSpace(string(b)), "\n", "\n    "))
}

// childrenOf returns the children of a process that have not ended.
func childrenOf(pid int) (children []int) {
	all, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range all {
		b, err := os.ReadFile(name)
		var child, parent int
		var state string
		if _, rest, ok := strings.Cut(string(b), ") "); err == nil && ok {
			if _, err := fmt.Sscanf(rest, "%s %d", &state, &parent); err == nil && parent == pid && state != "Z" {
				if _, err := fmt.Sscan(string(b), &child); err == nil {
					children = append(children, child)
				}
			}
		}
	}
	return children
}
