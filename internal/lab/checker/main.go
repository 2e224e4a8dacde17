package main

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mpicx/go-mpicx/internal/collective"
)

func main() {
	programs := flag.Uint64("programs", 20000, "run that many")
	from := flag.Uint64("from", 1, "the first `seed`")
	long := flag.Duration("for", 0, "run as many as that time allows instead, of seeds that nobody has tried")
	seed := flag.Uint64("seed", 0, "run only the program of this `seed`, until it fails")
	trace := flag.Bool("trace", false, "with -seed: print the program and what each rank was told")
	parallel := flag.Bool("parallel", false, "let ranks run on all cores: more orders of events, and harder to repeat")
	goroutines := flag.Uint64("goroutines", 50, "which share of the programs has several goroutines at a rank, in `percent`")
	every := flag.Bool("every", false, "go on after a failure, and print each kind of failure once")
	whole := flag.Bool("whole", false, "print programs that fail as they are, which takes no time")
	again := flag.Int("again", 0, "count a failure only if its program fails again in that `many` runs")
	testing.Init()
	flag.Parse()
	debug.SetGCPercent(400)
	if !*parallel {
		runtime.GOMAXPROCS(1) // one order of events, usually
	}
	c := &checker{next: *from, until: *from + *programs, goroutines: *goroutines, every: *every, whole: *whole, trace: *trace, repeats: *again, out: os.Stdout, seen: make(map[string]int)}
	if *long > 0 {
		c.next, c.until, c.end = rand.Uint64N(1<<48), 1<<63, time.Now().Add(*long)
	}
	if *seed > 0 {
		c.next, c.until, c.tries = *seed, *seed+1, 100
	}
	// A bubble of testing/synctest needs a test.
	testing.Main(func(string, string) (bool, error) { return true, nil },
		[]testing.InternalTest{{Name: "checker", F: func(t *testing.T) {
			if c.run(t); c.failed > 0 {
				t.Fail()
			}
		}}}, nil, nil)
}

// byMessages are algorithms for all operations that a board carries out. With them, every second
// program has its operations carried out by messages, which must not make a difference.
var byMessages = func() map[string]string {
	names := make(map[string]string)
	for _, op := range collective.Operations {
		names[op.Name] = op.Algorithms[len(op.Algorithms)-1].Name
	}
	return names
}()

// A checker runs programs until one fails.
type checker struct {
	next, until uint64 // seeds
	goroutines  uint64 // share of the programs with several, in percent
	end         time.Time
	tries       int // of each program; 0: one
	every       bool
	whole       bool
	trace       bool
	repeats     int // runs of a program that has failed, of which one has to fail too; 0: none
	out         io.Writer

	ran, failed int
	rare        int            // failures that did not come again
	seen        map[string]int // failures by kind
}

func (c *checker) run(t *testing.T) {
	start, printed := time.Now(), time.Now()
	for seed := c.next; seed < c.until && (c.end.IsZero() || time.Now().Before(c.end)); seed++ {
		c.one(t, seed)
		if c.failed > 0 && !c.every {
			break
		}
		if c.tries == 0 && time.Since(printed) > 10*time.Second {
			printed = time.Now()
			c.print(start)
		}
	}
	c.print(start)
	if c.rare > 0 {
		fmt.Fprintf(c.out, "%d more failed once, and not again in %d runs each\n", c.rare, c.repeats)
	}
	for kind, n := range c.seen {
		fmt.Fprintf(c.out, "%6d %s\n", n, kind)
	}
}

func (c *checker) print(start time.Time) {
	d := time.Since(start)
	fmt.Fprintf(c.out, "%d programs, %d failed, in %v, %.0f programs/s\n", c.ran, c.failed, d.Round(time.Second/10), float64(c.ran)/d.Seconds())
}

// one runs the program of a seed. If it fails, one prints a smaller program that fails.
func (c *checker) one(t *testing.T, seed uint64) {
	p := generate(seed, c.goroutines)
	collective.Forced = nil
	if seed%2 == 1 {
		collective.Forced = byMessages
	}
	var h *history
	for range max(c.tries, 1) {
		c.ran++
		h = play(t, p)
		if len(h.failures) > 0 {
			break
		}
	}
	if c.trace {
		fmt.Fprintf(c.out, "%v\n%v\n", p, h)
	}
	if len(h.failures) == 0 {
		return
	}
	if c.repeats > 0 && !c.failsAgain(t, p) {
		c.rare++
		fmt.Fprintf(c.out, "\nonce, and not again in %d runs: seed %d: %s\n\n%v\nWhat the ranks were told:\n%v\n",
			c.repeats, seed, strings.Join(h.failures, "\n"), p, h)
		return
	}
	c.failed++
	kind := kindOf(h)
	if c.seen[kind]++; c.seen[kind] > 1 {
		return
	}
	tries, shrinking := 30, 10*time.Second
	if c.whole {
		tries = 0
	}
	last, begin := h, time.Now()
	small := shrink(p, func(q *program) bool {
		for range tries {
			if time.Since(begin) > shrinking {
				return false
			}
			if h := play(t, q); len(h.failures) > 0 && kindOf(h) == kind {
				last = h
				return true
			}
		}
		return false
	})
	fmt.Fprintf(c.out, "\nFAIL seed %d: %s\n\n%v\nWhat the ranks were told:\n%v\nReplay it: go -C internal/lab run ./checker -seed %d -goroutines %d -trace\n\n",
		seed, strings.Join(last.failures, "\n"), small, last, seed, c.goroutines)
}

func (c *checker) failsAgain(t *testing.T, p *program) bool {
	for range c.repeats {
		if len(play(t, p).failures) > 0 {
			return true
		}
	}
	return false
}

// kindOf names the kind of a failure, the same for programs that fail alike: the rule, and the text
// before the details.
func kindOf(h *history) string {
	rule, text, _ := strings.Cut(h.failures[0], ": ")
	switch rule {
	case "leak", "Run":
		return rule
	case "hang": // named by the operations in which ranks are blocked
		var in []string
		for _, line := range strings.Split(text, "\n")[1:] {
			line = line[strings.LastIndex(line, ": ")+1:]
			if f := strings.Fields(line); len(f) > 0 && !slices.Contains(in, f[0]) {
				in = append(in, f[0])
			}
		}
		slices.Sort(in)
		return rule + " " + strings.Join(in, " ")
	}
	if rule == "F2" {
		text, _, _ = strings.Cut(text, ")")
		return rule + " " + text
	}
	if i := strings.IndexAny(text, "0123456789:["); i >= 0 {
		text = text[:i]
	}
	return rule + " " + text
}
