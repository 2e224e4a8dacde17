package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/internal/machine"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// In a job of mpirun's an Instance is around all the tests, since each may Run, and
// MPI can be started once.
func TestMain(m *testing.M) {
	if machine.Processes() == 0 {
		goleak.VerifyTestMain(m)
		return
	}
	ctx := context.Background()
	var err error
	code := 1
	if processes, err = mpicx.Initialize(ctx); err == nil {
		code = m.Run()
		err = processes.Finalize(ctx)
		if broken != nil && errors.Is(err, broken) {
			os.Exit(code) // a job that has failed can't be ended: what watches the others is there until the process ends
		}
	}
	if err == nil {
		err = goleak.Find()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// seeded returns a generator whose seed is logged and can be given.
func seeded(t *testing.T) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("MPICX_SEED"); s != "" {
		var err error
		seed, err = strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
	}
	seed = share(t, seed)
	t.Logf("MPICX_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// run collects what each rank found, for the test to look at after the run.
func run[T any](t *testing.T, n int, fn func(ctx context.Context, world *mpicx.Comm) (T, error)) []T {
	t.Helper()
	all := make([]T, n)
	mpicxtest.Run(t, n, func(ctx context.Context, world *mpicx.Comm) (err error) {
		all[world.Rank()], err = fn(ctx, world)
		return err
	})
	if t.Failed() {
		t.FailNow()
	}
	return gather(t, all)
}

// succeeds is a function of a scope.
func succeeds(context.Context) error { return nil }

// returns is a program that does nothing.
func returns(context.Context, *mpicx.Comm) error { return nil }

// yield lets other goroutines run a number of times.
func yield(times int) {
	for range times {
		runtime.Gosched()
	}
}

// untilError returns when the rank knows of an error.
func untilError(c *mpicx.Comm) {
	for c.Err() == nil {
		runtime.Gosched()
	}
}

// settle lets all other ranks run until each is blocked or done: time is fake.
func settle() { time.Sleep(time.Second) }

// messagesAre says that err is the verdict of errors with these messages.
func messagesAre(err error, messages ...string) error {
	return failuresAre(err, messages, func(f mpicx.Failure) string { return f.Message })
}

// failedAt says that err is the verdict of errors of these ranks.
func failedAt(err error, ranks ...int) error {
	return failuresAre(err, ranks, func(f mpicx.Failure) int { return f.Rank })
}

// propagated says that err is the verdict of errors of these codes, with nothing around it.
func propagated(err error, codes ...int) error {
	if _, is := err.(*mpicx.PropagatedError); !is {
		return fmt.Errorf("got %w, expected an error of codes %v", err, codes)
	}
	return failuresAre(err, codes, func(f mpicx.Failure) int { return f.Code })
}

// failuresAre says that err is the verdict of errors of which this is wanted.
func failuresAre[T comparable](err error, want []T, of func(mpicx.Failure) T) error {
	p, _ := errors.AsType[*mpicx.PropagatedError](err)
	if p == nil || !slices.EqualFunc(p.Failures, want, func(f mpicx.Failure, w T) bool { return of(f) == w }) {
		return fmt.Errorf("%s: got %w, expected an error with %v", caller(3), err, want)
	}
	return nil
}

// explain returns err with a text before it, or nil.
func explain(err error, format string, args ...any) error {
	if err != nil {
		err = fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
	}
	return err
}

// expect says that err is want, or has it inside.
func expect(err, want error) error {
	if !errors.Is(err, want) {
		return fmt.Errorf("%s: got %w, expected %v", caller(2), err, want)
	}
	return nil
}

// hasType says whether err is an error of type E, or has one inside.
func hasType[E error](err error) bool {
	_, is := errors.AsType[E](err)
	return is
}

// caller returns the line that is above calls up the stack.
func caller(above int) string {
	_, file, line, _ := runtime.Caller(above)
	return fmt.Sprintf("%s:%d", filepath.Base(file), line)
}

// isA says that err is an error of type E, or has one inside.
func isA[E error](err error) error {
	if !hasType[E](err) {
		return fmt.Errorf("%s: got %w, expected a %v", caller(2), err, reflect.TypeFor[E]())
	}
	return nil
}

// corruption says that err is a corruption by this rank, with this message if there is one.
func corruption(err error, rank int, message ...string) error {
	c, is := err.(*mpicx.CommCorruptedError)
	if !is || c == nil || len(c.Failures) != 1 || c.Failures[0].Rank != rank || !strings.Contains(c.Failures[0].Message, strings.Join(message, "")) {
		return fmt.Errorf("%s: got %v, expected a corruption by rank %d: %v", caller(2), err, rank, message)
	}
	return nil
}

// signalled has rank 0 signal, and all get that.
func signalled(ctx context.Context, c *mpicx.Comm, code int) error {
	if c.Rank() == 0 {
		return propagated(c.SignalError(ctx, code), code)
	}
	return propagated(mpicx.Recv(c, []int{0}, 0, 99).Wait(ctx), code)
}

// bothBackends runs a test with each.
func bothBackends(t *testing.T, test func(t *testing.T, backend mpicx.Option)) {
	for _, name := range []string{"blackchannel", "ulfm"} {
		t.Run(name, func(t *testing.T) { test(t, hook.Backend[mpicx.Option](name)) })
	}
}

// runBoth runs fn with both backends. A deadlock ends it.
func runBoth(t *testing.T, n int, fn func(ctx context.Context, world *mpicx.Comm) error) {
	t.Helper()
	runBothTimes(t, 1, n, fn)
}

// runBothTimes runs fn several times with each backend, for what depends on the schedule.
func runBothTimes(t *testing.T, times, n int, fn func(ctx context.Context, world *mpicx.Comm) error) {
	t.Helper()
	if processes != nil {
		mpicxtest.Run(t, n, fn)
		return
	}
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		for range times {
			inBubble(t, n, fn, backend)
		}
	})
}

// jobs runs fn as a job with each backend, in a bubble, and has what Run returns checked.
func jobs(t *testing.T, n int, check func(err error), fn func(ctx context.Context, world *mpicx.Comm) error, opts ...mpicx.Option) {
	oneProcess(t)
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		synctest.Test(t, func(t *testing.T) { check(mpicx.Run(t.Context(), fn, append(opts, mpicx.WithRanks(n), backend)...)) })
	})
}

// asBoth runs fn at goroutine ranks, and at processes.
func asBoth(t *testing.T, n int, fn func(ctx context.Context, world *mpicx.Comm) error) {
	t.Run("goroutines", func(t *testing.T) { mpicxtest.Run(t, n, fn) })
	t.Run("processes", func(t *testing.T) { mpicxtest.RunProcesses(t, n, fn) })
}

// inBubble is mpicxtest.RunWith, which finds a deadlock at once, for tests of all ranks in one process.
func inBubble(t *testing.T, n int, fn func(ctx context.Context, world *mpicx.Comm) error, opts ...mpicx.Option) {
	t.Helper()
	oneProcess(t)
	mpicxtest.RunWith(t, n, fn, opts...)
}

// atRank has the side of one rank in the world wrapped.
func atRank(rank int, wrap func(transport.Comm) transport.Comm) mpicx.Option {
	return hook.Transport[mpicx.Option](func(c transport.Comm) transport.Comm {
		if c.Rank() == rank {
			return wrap(c)
		}
		return c
	})
}

// listening is a side whose listeners are wrapped, and so are those of all sides made from it.
type listening struct {
	transport.Comm
	wrap func(transport.Comm, transport.Listener) transport.Listener
}

func (c *listening) Sub(name transport.Name, members []int) (transport.Comm, error) {
	made, err := c.Comm.Sub(name, members)
	if err != nil {
		return nil, err
	}
	return &listening{made, c.wrap}, nil
}

func (c *listening) Listen(l transport.Listener) { c.Comm.Listen(c.wrap(c.Comm, l)) }

// fails returns a scope's function that fails with err at one rank, while the others are in a Barrier.
func fails(c *mpicx.Comm, rank int, err error) func(context.Context) error {
	return func(ctx context.Context) error {
		if c.Rank() == rank {
			return err
		}
		return c.Barrier().Wait(ctx)
	}
}

// product goes through all pairs of a value of one slice and a value of the other.
func product[A, B any](as []A, bs []B) iter.Seq2[A, B] {
	return func(yield func(A, B) bool) {
		for _, a := range as {
			for _, b := range bs {
				if !yield(a, b) {
					return
				}
			}
		}
	}
}

// dup returns a duplicate of world that all ranks have: no error finds one of them in Dup any more.
func dup(ctx context.Context, world *mpicx.Comm) (child *mpicx.Comm) {
	err := world.TryAll(ctx, func(ctx context.Context) (err error) {
		child, err = world.Dup().Get(ctx)
		return err
	})
	mpicx.Throw(err)
	return child
}

// diagnosesTo makes Run write its report of a hang to w.
func diagnosesTo(w io.Writer) mpicx.Option {
	return hook.Option[mpicx.Option](func(s *hook.Settings) { s.Diagnoses = w })
}

// told is what all ranks are told alike.
func told(err error) string {
	if failures, corrupt := failuresOf(err); failures != nil {
		return fmt.Sprint(corrupt, failures)
	}
	return fmt.Sprint(err)
}

// failuresOf returns those of a verdict.
func failuresOf(err error) (failures []mpicx.Failure, corrupt bool) {
	if c, is := errors.AsType[*mpicx.CommCorruptedError](err); is {
		return c.Failures, true
	}
	if p, is := errors.AsType[*mpicx.PropagatedError](err); is {
		failures = p.Failures
	}
	return failures, false
}

// errClose is an error of its own that a rank returns when an error of all has ended what it did.
var errClose = errors.New("close failed")

// polled asks until there is an error.
func polled(ask func() error) func() error {
	return func() error {
		for range 1_000_000 { // of fake time
			if err := ask(); err != nil {
				return err
			}
			time.Sleep(time.Microsecond)
		}
		return errors.New("asked in vain")
	}
}

// same says that an operation has given what was expected.
func same[T comparable](what string, got, expected []T) error {
	if !slices.Equal(got, expected) {
		return fmt.Errorf("%s: got %v, expected %v", what, got, expected)
	}
	return nil
}

func add(a, b int) int { return a + b }
