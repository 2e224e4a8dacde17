package diagnosis

import (
	"cmp"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"sync"
	"time"
)

// Signal returns the signal on which a process prints, as MPICX_DIAGNOSE says; nil: none.
func Signal() os.Signal {
	return Signals[cmp.Or(os.Getenv("MPICX_DIAGNOSE"), "SIGUSR1")]
}

// Caught are the signals that a Reporter gets; nil: none.
type Caught struct {
	Print os.Signal
	// Quit, usually SIGQUIT, is raised again when the Reporter has printed.
	Quit os.Signal
	// Several says that the job has other processes. They may get Quit at the same time, and have
	// to live until they have answered.
	Several bool
	// Tell is called first on Print. If it returns true, the Reporter does not print.
	Tell func() bool
}

// To begin to catch a signal, and to end that, takes longer than a short job. So a process catches
// the signals of its Reporters until there has been none for a while.
var catching = struct {
	sync.Mutex
	signals   chan os.Signal
	caught    []os.Signal
	quit      os.Signal
	reporters []*Reporter
	over      chan struct{} // ends the goroutine that hears the signals; nil: there is none
	until     *time.Timer
}{signals: make(chan os.Signal, 4)}

// linger is how long a process catches signals after the end of its last Reporter.
const linger = 100 * time.Millisecond

// patience is how long the ranks are asked on a signal.
const patience = 2 * time.Second

// catch has the Reporter get its signals, until release.
func (r *Reporter) catch() {
	if r.on.Print == nil && r.on.Quit == nil {
		return
	}
	c := &catching
	c.Lock()
	defer c.Unlock()
	c.reporters = append(c.reporters, r)
	c.quit = cmp.Or(r.on.Quit, c.quit)
	for _, s := range []os.Signal{r.on.Print, r.on.Quit} {
		if s != nil && !slices.Contains(c.caught, s) {
			c.caught = append(c.caught, s)
			signal.Notify(c.signals, s)
		}
	}
	if c.over == nil {
		c.over = make(chan struct{})
		go hear(c.over)
	}
}

func (r *Reporter) release() {
	c := &catching
	c.Lock()
	defer c.Unlock()
	c.reporters = slices.DeleteFunc(c.reporters, func(other *Reporter) bool { return other == r })
	switch {
	case len(c.reporters) > 0 || c.over == nil:
		return
	case c.until == nil:
		c.until = time.AfterFunc(linger, letGo)
	default:
		c.until.Reset(linger)
	}
	close(c.over)
	c.over = nil
}

// letGo ends the catching of signals if there is no Reporter. A quit that has come since there is
// none is raised.
func letGo() {
	c := &catching
	c.Lock()
	defer c.Unlock()
	if len(c.reporters) > 0 {
		return
	}
	signal.Stop(c.signals)
	for c.caught = nil; len(c.signals) > 0; {
		if s := <-c.signals; s == c.quit {
			raise(s)
		}
	}
}

// raise sends this process a signal.
func raise(s os.Signal) {
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		_ = p.Signal(s)
	}
}

// hear gives the Reporters the signals.
func hear(over chan struct{}) {
	for {
		select {
		case s := <-catching.signals:
			catching.Lock()
			isQuit := s == catching.quit
			catching.Unlock()
			if isQuit {
				onQuit(s)
			} else {
				go onPrint(s) // which may take a while
			}
		case <-over:
			return
		}
	}
}

// each calls f, in goroutines, for the Reporters that there are. It returns when all calls have.
func each(f func(*Reporter)) {
	var calls sync.WaitGroup
	defer calls.Wait()
	catching.Lock()
	defer catching.Unlock()
	for _, r := range catching.reporters {
		calls.Add(1)
		r.printer.Go(func() { // End waits for it
			defer calls.Done()
			f(r)
		})
	}
}

func onPrint(s os.Signal) {
	each(func(r *Reporter) {
		if r.on.Print == s && (r.on.Tell == nil || !r.on.Tell()) && r.signalled.TryLock() {
			defer r.signalled.Unlock()
			r.printOn(patience)
		}
	})
}

// onQuit prints, and then ends the process as if the signal had not been caught. A program that has
// the signal for itself gets it once more.
func onQuit(s os.Signal) {
	each(func(r *Reporter) {
		if r.on.Quit != s {
			return
		}
		others := time.After(patience / 2)
		if r.printOn(patience * 2 / 5); r.on.Several {
			<-others
		}
	})
	c := &catching
	c.Lock()
	signal.Stop(c.signals)
	c.caught = slices.DeleteFunc(c.caught, func(caught os.Signal) bool { return caught == s })
	if len(c.caught) > 0 {
		signal.Notify(c.signals, c.caught...)
	}
	c.Unlock()
	raise(s)
}

// printOn asks on a signal, for some time, and prints the answers.
func (r *Reporter) printOn(within time.Duration) {
	if text := r.ask(BySignal, within/8, time.Now().Add(within)); text != "" {
		fmt.Fprintf(r.out, "mpicx: on a signal, %s", text)
	}
}
