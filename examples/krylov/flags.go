package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/krylov"
)

// A config is what the flags say.
type config struct {
	matrix, rhs     string
	method, precond string
	ranks           int
	tol             float64
	maxIter, cycle  int

	faults            []Fault
	recovery          string
	checkpoint, check int

	compare, json bool
	plot, out     string
}

// The recoveries.
const (
	recoverRestart  = "restart"
	recoverRollback = "rollback"
	recoverShrink   = "shrink"
	recoverNone     = "none"
)

var methods = map[string]krylov.Method{"cg": krylov.CG, "gmres": krylov.GMRES, "bicgstab": krylov.BiCGStab}

// processes is how many mpirun has started; 0: ranks are goroutines.
var processes int

// defaultRanks is how many ranks there are if nobody says.
func defaultRanks() int {
	return cmp.Or(processes, 8)
}

const usage = `Usage: krylov [flags]

Solves A·x = b on several ranks, has something go wrong on one of them in
mid-iteration, recovers, and says what happened. Exits with 0 if it converged,
1 if not, 2 for flags that make no sense.

The system
  -matrix FILE      Matrix Market file, .mtx or .mtx.gz (default: poisson2d-128,
                    which is built in)
  -rhs FILE         right-hand side b, Matrix Market (default: A·x of a known x,
                    so that the error is reported too)
The method
  -method NAME      cg, gmres or bicgstab (default cg)
  -precond NAME     none, jacobi or blockjacobi (default none)
  -ranks N          ranks to divide the rows among (default 8; under mpirun,
                    its processes)
  -tol T            until |b-A·x| <= T·|b| (default 1e-8)
  -maxiter N        or so many iterations (default 5000)
  -gmres-restart N  length of a cycle of gmres (default 30)
What goes wrong
  -inject SPEC      rank=R,iter=I,kind=K: K strikes rank R after iteration I, or
                    with recovery=N instead of iter=I in the middle of the Nth
                    recovery. May be repeated. Default: rank=3,iter=40,kind=nan.
                    "none" for nothing. K is one of
                      nan      an element of the residual turns NaN
                      bitflip  a bit of an element of the solution flips; bit=B
                               says which, 0 to 63 (default 57, of the exponent)
                      skew     the rank's part of the newest vector of the Krylov
                               basis is not orthogonal any more
                      error    a component on the rank returns an error
                      panic    a component on the rank panics
                      die      the rank's process dies and tells nobody; needs a
                               build with -tags ulfm, which sees that
What is done about it
  -recovery NAME    restart   repair on the rank, new Krylov space everywhere
                    rollback  all go back to the last checkpoint
                    shrink    restart, and if ranks panic or die the others go on
                              without them and take their rows over; needs a build
                              with -tags ulfm
                    none      what the same solver does without help
                    (default restart). If a rank panics or dies, restart and
                    rollback start the job again from the last checkpoint
  -checkpoint N     keep a checkpoint in memory every N iterations (default 25)
  -check N          compare the residual with the true one every N iterations
                    (default 25)
What to show
  -compare          run without faults and with each recovery, and print a table
  -plot FILE        draw the residuals: .png, .svg or .pdf
  -out FILE         write the solution of the last run, Matrix Market
  -json             print one JSON document instead of text

Examples
  krylov -inject rank=5,iter=100,kind=bitflip -recovery rollback
  krylov -method gmres -precond blockjacobi -inject rank=2,iter=15,kind=skew
  krylov -inject rank=0,iter=50,kind=error -inject rank=7,iter=90,kind=panic
  krylov -compare -plot residual.png
With -tags ulfm
  krylov -inject rank=3,iter=40,kind=die -recovery shrink
  krylov -inject rank=0,iter=40,kind=die -inject rank=5,recovery=1,kind=die \
         -recovery shrink
`

func parseFlags(args []string) (*config, error) {
	c := &config{}
	fs := flag.NewFlagSet("krylov", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&c.matrix, "matrix", "", "")
	fs.StringVar(&c.rhs, "rhs", "", "")
	fs.StringVar(&c.method, "method", "cg", "")
	fs.StringVar(&c.precond, "precond", "none", "")
	fs.IntVar(&c.ranks, "ranks", defaultRanks(), "")
	fs.Float64Var(&c.tol, "tol", 1e-8, "")
	fs.IntVar(&c.maxIter, "maxiter", 5000, "")
	fs.IntVar(&c.cycle, "gmres-restart", 30, "")
	var specs []string
	fs.Func("inject", "", func(s string) error { specs = append(specs, s); return nil })
	fs.StringVar(&c.recovery, "recovery", recoverRestart, "")
	fs.IntVar(&c.checkpoint, "checkpoint", 25, "")
	fs.IntVar(&c.check, "check", 25, "")
	fs.BoolVar(&c.compare, "compare", false, "")
	fs.StringVar(&c.plot, "plot", "", "")
	fs.StringVar(&c.out, "out", "", "")
	fs.BoolVar(&c.json, "json", false, "")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("argument %q, expected flags only; see -h", fs.Arg(0))
	}

	for _, e := range []error{
		oneOf("-method", c.method, "cg", "gmres", "bicgstab"),
		oneOf("-precond", c.precond, "none", "jacobi", "blockjacobi"),
		recoveryName(c.recovery),
		atLeastOne("-ranks", c.ranks), atLeastOne("-maxiter", c.maxIter),
		atLeastOne("-gmres-restart", c.cycle), atLeastOne("-checkpoint", c.checkpoint), atLeastOne("-check", c.check),
		plotName(c.plot),
	} {
		if e != nil {
			return nil, e
		}
	}
	if processes > 0 && c.ranks != processes {
		return nil, fmt.Errorf("-ranks %d, expected %d, as mpirun has started so many processes", c.ranks, processes)
	}
	if !(c.tol > 0 && c.tol < 1) {
		return nil, fmt.Errorf("-tol %g, expected a number between 0 and 1", c.tol)
	}
	return c, c.parseFaults(specs)
}

// parseFaults parses the values of -inject.
func (c *config) parseFaults(specs []string) error {
	if specs == nil {
		c.faults = []Fault{{Kind: kindNaN, Rank: min(3, c.ranks-1), Iter: 40, Bit: defaultBit}}
		return nil
	}
	if slices.Equal(specs, []string{"none"}) {
		return nil
	}
	for _, spec := range specs {
		f, err := parseFault(spec)
		if err != nil {
			return fmt.Errorf("-inject %q: %w", spec, err)
		}
		if f.Kind == kindDie && !hasULFM {
			return fmt.Errorf("-inject %q: kind %q, expected a build with -tags ulfm for it: %s does not see that a process dies", spec, f.Kind, mpicx.Backend)
		}
		if f.Rank >= c.ranks {
			return fmt.Errorf("-inject %q: rank %d, expected 0 to %d, as there are %d", spec, f.Rank, c.ranks-1, c.ranks)
		}
		c.faults = append(c.faults, f)
	}
	return nil
}

// hasULFM says whether the error backend sees processes die, and repairs
// communicators.
const hasULFM = mpicx.Backend == "ulfm"

// recoveryName checks that there is a recovery of this name in this build.
func recoveryName(name string) error {
	if name == recoverShrink && !hasULFM {
		return fmt.Errorf("-recovery %q, expected a build with -tags ulfm for it: %s does not shrink communicators", name, mpicx.Backend)
	}
	if name == recoverShrink {
		return nil
	}
	if err := oneOf("-recovery", name, recoverRestart, recoverRollback, recoverNone); err != nil {
		return fmt.Errorf("%w, or with -tags ulfm shrink", err)
	}
	return nil
}

func oneOf(flag, value string, names ...string) error {
	if slices.Contains(names, value) {
		return nil
	}
	return fmt.Errorf("%s %q, expected %s or %s", flag, value, strings.Join(names[:len(names)-1], ", "), names[len(names)-1])
}

func atLeastOne(flag string, n int) error {
	if n >= 1 {
		return nil
	}
	return fmt.Errorf("%s %d, expected 1 or more", flag, n)
}
