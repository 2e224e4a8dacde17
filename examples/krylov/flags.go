package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mpicx/go-mpicx/examples/krylov/fault"
	"github.com/mpicx/go-mpicx/examples/krylov/report"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/krylov"
)

// A config contains the flags.
type config struct {
	report.Settings
	matrix   string // a file, or ""
	maxIter  int
	faults   []fault.Fault
	recovery string
	waiting  int    // number of spares; -1: as many as faults end ranks
	respawn  bool   // fresh ranks instead of spares
	solution string // a file for the solution, or ""
	timeline string // a folder, or ""
}

// The recoveries.
const (
	recoverRestart  = "restart"
	recoverRollback = "rollback"
	recoverReplace  = "replace"
	recoverShrink   = "shrink"
	recoverNone     = report.None
)

var methods = map[string]krylov.Method{"cg": krylov.CG, "gmres": krylov.GMRES, "bicgstab": krylov.BiCGStab}

// processes is the number of processes that a launcher has started; 0: ranks are goroutines.
var processes int

// defaultRanks is the number of ranks without -ranks and a launcher.
const defaultRanks = 8

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
  -ranks N          ranks to divide the rows among (default 8; under mpirun and
                    mpicxrun, their processes without the spares)
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
                    replace   rollback, and if ranks panic or die others, which have
                              been waiting, take their places, with the checkpoint
                              from the memory of a neighbour; needs a build with
                              -tags ulfm, and under a launcher -spares or
                              -respawn
                    shrink    restart, and if ranks panic or die the others go on
                              without them and take their rows over; needs a build
                              with -tags ulfm
                    none      what the same solver does without help
                    (default restart). If a rank panics or dies, restart and
                    rollback start the job again from the last checkpoint
  -spares N         spare ranks, for replace (default: as many as the ranks that
                    -inject ends; under a launcher 0)
  -respawn          fresh ranks instead of spares, for replace; under mpicxrun, with
                    its -respawn
  -checkpoint N     keep a checkpoint in memory every N iterations (default 25)
  -check N          compare the residual with the true one every N iterations
                    (default 25)
What to show
  -compare          run without faults and with each recovery, and print a table
  -out FILE         write the solution of the last run, Matrix Market
  -timeline DIR     record what each rank is in, and what errors do to it, for
                    mpicx/mpicxtrace
  -json             print one JSON document instead of text

Examples
  krylov -inject rank=5,iter=100,kind=bitflip -recovery rollback
  krylov -method gmres -precond blockjacobi -inject rank=2,iter=15,kind=skew
  krylov -inject rank=0,iter=50,kind=error -inject rank=7,iter=90,kind=panic
  krylov -compare
With -tags ulfm
  krylov -inject rank=3,iter=40,kind=die -recovery shrink
  krylov -inject rank=0,iter=40,kind=die -inject rank=5,recovery=1,kind=die \
         -recovery shrink
  mpicxrun -n 5 krylov -spares 1 -recovery replace -inject rank=3,iter=40,kind=die
  mpicxrun -n 4 -respawn 9 krylov -respawn -recovery replace \
         -inject rank=3,iter=40,kind=die
`

func parseFlags(args []string) (*config, error) {
	c := &config{}
	fs := flag.NewFlagSet("krylov", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&c.matrix, "matrix", "", "")
	fs.StringVar(&c.RHS, "rhs", "", "")
	fs.StringVar(&c.Method, "method", "cg", "")
	fs.StringVar(&c.Precond, "precond", "none", "")
	fs.IntVar(&c.Ranks, "ranks", 0, "")
	fs.IntVar(&c.waiting, "spares", -1, "")
	fs.BoolVar(&c.respawn, "respawn", false, "")
	fs.Float64Var(&c.Tol, "tol", 1e-8, "")
	fs.IntVar(&c.maxIter, "maxiter", 5000, "")
	fs.IntVar(&c.GMRESRestart, "gmres-restart", 30, "")
	var specs []string
	fs.Func("inject", "", func(s string) error { specs = append(specs, s); return nil })
	fs.StringVar(&c.recovery, "recovery", recoverRestart, "")
	fs.IntVar(&c.Checkpoint, "checkpoint", 25, "")
	fs.IntVar(&c.Check, "check", 25, "")
	fs.BoolVar(&c.Compare, "compare", false, "")
	fs.StringVar(&c.solution, "out", "", "")
	fs.StringVar(&c.timeline, "timeline", "", "")
	fs.BoolVar(&c.JSON, "json", false, "")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("argument %q, expected flags only; see -h", fs.Arg(0))
	}

	if !isSet(fs, "ranks") {
		c.Ranks = defaultRanks
		if processes > 0 {
			c.Ranks = processes - max(c.waiting, 0)
		}
	}
	for _, e := range []error{
		c.checkSpares(fs),
		oneOf("-method", c.Method, "cg", "gmres", "bicgstab"),
		oneOf("-precond", c.Precond, "none", "jacobi", "blockjacobi"),
		recoveryName(c.recovery),
		atLeastOne("-ranks", c.Ranks), atLeastOne("-maxiter", c.maxIter),
		atLeastOne("-gmres-restart", c.GMRESRestart), atLeastOne("-checkpoint", c.Checkpoint), atLeastOne("-check", c.Check),
	} {
		if e != nil {
			return nil, e
		}
	}
	if workers := processes - max(c.waiting, 0); processes > 0 && c.Ranks != workers {
		return nil, fmt.Errorf("-ranks %d, expected %d: the launcher has started %d processes, of which %d are spares", c.Ranks, workers, processes, processes-workers)
	}
	if !(c.Tol > 0 && c.Tol < 1) {
		return nil, fmt.Errorf("-tol %g, expected a number between 0 and 1", c.Tol)
	}
	c.Matrix = "poisson2d-128"
	if c.matrix != "" {
		c.Matrix = strings.TrimSuffix(strings.TrimSuffix(filepath.Base(c.matrix), ".gz"), ".mtx")
	}
	return c, c.parseFaults(specs)
}

// parseFaults parses the values of -inject.
func (c *config) parseFaults(specs []string) error {
	if specs == nil {
		c.faults = []fault.Fault{{Kind: fault.KindNaN, Rank: min(3, c.Ranks-1), Iter: 40, Bit: fault.DefaultBit}}
		return nil
	}
	if slices.Equal(specs, []string{"none"}) {
		return nil
	}
	for _, spec := range specs {
		f, err := fault.Parse(spec)
		if err != nil {
			return fmt.Errorf("-inject %q: %w", spec, err)
		}
		if f.Kind == fault.KindDie && !hasULFM {
			return fmt.Errorf("-inject %q: kind %q, expected a build with -tags ulfm for it: %s does not see that a process dies", spec, f.Kind, mpicx.Backend)
		}
		if f.Rank >= c.Ranks {
			return fmt.Errorf("-inject %q: rank %d, expected 0 to %d, as there are %d", spec, f.Rank, c.Ranks-1, c.Ranks)
		}
		c.faults = append(c.faults, f)
	}
	return nil
}

// hasULFM reports whether the error backend sees deaths and repairs communicators.
const hasULFM = mpicx.Backend == "ulfm"

// repairs reports whether the others continue without ranks that panic or die.
func (c *config) repairs() bool { return c.recovery == recoverShrink || c.recovery == recoverReplace }

// spares is the number of spares.
func (c *config) spares() (n int) {
	if c.recovery != recoverReplace || c.respawn {
		return 0
	}
	if c.waiting >= 0 || processes > 0 {
		return max(c.waiting, 0)
	}
	for _, f := range c.faults {
		if f.EndsRank() {
			n++
		}
	}
	return n
}

func isSet(fs *flag.FlagSet, name string) (set bool) {
	fs.Visit(func(f *flag.Flag) { set = set || f.Name == name })
	return set
}

// checkSpares checks that there are ranks and, if processes are to be replaced, spares.
func (c *config) checkSpares(fs *flag.FlagSet) error {
	given := isSet(fs, "spares")
	switch {
	case given && c.waiting < 0:
		return atLeast("-spares", c.waiting, 0)
	case processes > 0 && c.waiting >= processes:
		return fmt.Errorf("-spares %d, expected fewer than %d, the number of processes that the launcher has started", c.waiting, processes)
	case given && c.recovery != recoverReplace && !c.Compare:
		return fmt.Errorf("-spares %d, expected it with -recovery replace or -compare only", c.waiting)
	case c.respawn && (given || c.recovery != recoverReplace || c.Compare):
		return errors.New("-respawn, expected it with -recovery replace, and without -spares and -compare")
	case c.recovery == recoverReplace && processes > 0 && c.waiting < 1 && !c.respawn:
		return fmt.Errorf("-recovery %q, expected -spares 1 or more: under a launcher, some of its processes have to be spares; under mpicxrun -respawn, expected that or -respawn", c.recovery)
	}
	return nil
}

// recoveryName checks that there is a recovery of this name in this build.
func recoveryName(name string) error {
	switch {
	case (name == recoverShrink || name == recoverReplace) && !hasULFM:
		return fmt.Errorf("-recovery %q, expected a build with -tags ulfm for it: %s does not repair communicators", name, mpicx.Backend)
	case name == recoverShrink || name == recoverReplace:
		return nil
	}
	if err := oneOf("-recovery", name, recoverRestart, recoverRollback, recoverNone); err != nil {
		return fmt.Errorf("%w, or with -tags ulfm replace or shrink", err)
	}
	return nil
}

func oneOf(flag, value string, names ...string) error {
	if slices.Contains(names, value) {
		return nil
	}
	return fmt.Errorf("%s %q, expected %s or %s", flag, value, strings.Join(names[:len(names)-1], ", "), names[len(names)-1])
}

func atLeastOne(flag string, n int) error { return atLeast(flag, n, 1) }

func atLeast(flag string, n, least int) error {
	if n >= least {
		return nil
	}
	return fmt.Errorf("%s %d, expected %d or more", flag, n, least)
}
