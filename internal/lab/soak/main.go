package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

func main() {
	schedules := flag.Uint64("schedules", 100000, "run that many")
	from := flag.Uint64("from", 1, "the first `seed`")
	long := flag.Duration("for", 0, "run as many as that time allows instead, of seeds that nobody has tried")
	seed := flag.Uint64("seed", 0, "run only the schedule of this `seed`")
	trace := flag.Bool("trace", false, "with -seed: print what happens")
	flag.Parse()
	debug.SetGCPercent(400) // there is much garbage and little live memory

	s := soak{next: *from, until: *from + *schedules}
	if *long > 0 {
		s.next, s.until, s.end = rand.Uint64N(1<<48), 1<<63, time.Now().Add(*long)
	}
	if *seed > 0 {
		s.next, s.until = *seed, *seed+1
		if *trace {
			s.trace = os.Stdout
		}
	}
	if !s.run(os.Stdout) {
		os.Exit(1)
	}
}

// A soak runs schedules until one fails.
type soak struct {
	next, until uint64    // seeds
	end         time.Time // zero: none
	trace       io.Writer
	lossy       func([]byte) bool

	mu                        sync.Mutex
	start, printed            time.Time
	schedules, events, deaths int
	failed                    *run
}

// run runs schedules on all cores, and reports whether all succeeded.
func (s *soak) run(out io.Writer) bool {
	s.start, s.printed = time.Now(), time.Now()
	group, ctx := errgroup.WithContext(context.Background())
	group.SetLimit(runtime.GOMAXPROCS(0))
	for seed := s.next; seed < s.until && ctx.Err() == nil && (s.end.IsZero() || time.Now().Before(s.end)); seed++ {
		group.Go(func() error {
			r := newRun(seed, s.trace)
			r.lossy = s.lossy
			r.do()
			s.put(r, out)
			return r.err
		})
	}
	err := group.Wait()
	s.print(out)
	if err == nil {
		return true
	}
	if r := s.failed; s.trace == nil {
		last := tail{}
		again := newRun(r.seed, &last)
		again.lossy = s.lossy
		again.do()
		fmt.Fprintf(out, "\nThe last of what happened:\n\n")
		last.print(out)
	}
	fmt.Fprintf(out, "\nFAIL %v\n%v\nReplay it: go -C internal/lab run ./soak -seed %d -trace\n", &s.failed.plan, s.failed.err, s.failed.seed)
	return false
}

// put counts a run that has ended. Of the runs that failed it keeps the shortest.
func (s *soak) put(r *run, out io.Writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.schedules++
	s.events += r.events
	s.deaths += r.deaths
	if r.err != nil && (s.failed == nil || r.events < s.failed.events) {
		s.failed = r
	}
	if time.Since(s.printed) > 10*time.Second {
		s.printed = time.Now()
		s.print(out)
	}
}

func (s *soak) print(out io.Writer) {
	t := time.Since(s.start)
	fmt.Fprintf(out, "%d schedules, %d events, %d deaths in %v, %.0f schedules/s\n",
		s.schedules, s.events, s.deaths, t.Round(time.Second/10), float64(s.schedules)/t.Seconds())
}

// tail keeps the last lines that were written to it, each by one Write.
type tail struct {
	lines [100]string
	n     int
}

func (t *tail) Write(line []byte) (int, error) {
	t.lines[t.n%len(t.lines)] = string(line)
	t.n++
	return len(line), nil
}

func (t *tail) print(out io.Writer) {
	for i := range t.lines {
		fmt.Fprint(out, t.lines[(t.n+i)%len(t.lines)])
	}
}
