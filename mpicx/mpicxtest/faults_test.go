package mpicxtest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/buildtags"
	"github.com/mpicx/go-mpicx/internal/fault"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// Pieces of work that ranks die in.
var bodies = map[string]func(context.Context, *mpicx.Comm) error{
	"basic":      basic,
	"deriving":   deriving,
	"signalling": signalling,
	"any source": anySource,
}

func basic(ctx context.Context, comm *mpicx.Comm) error {
	if err := comm.Barrier().Wait(ctx); err != nil {
		return err
	}
	if err := mpicx.Allreduce(comm, []int{1}, []int{0}, mpicx.Sum).Wait(ctx); err != nil {
		return err
	}
	n := comm.Size()
	recv := mpicx.Recv(comm, []int{0}, (comm.Rank()+n-1)%n, 5)
	if err := mpicx.Ssend(comm, []int{comm.Rank()}, (comm.Rank()+1)%n, 5).Wait(ctx); err != nil {
		return err
	}
	return recv.Wait(ctx)
}

// deriving revokes the communicators that it has made if it fails.
func deriving(ctx context.Context, comm *mpicx.Comm) (err error) {
	dup, err := have(ctx, comm, comm.Dup())
	if err != nil {
		return err
	}
	defer revokeIf(ctx, &err, dup)
	half, err := have(ctx, dup, dup.Split(comm.Rank()%2, 0))
	if err != nil {
		return err
	}
	defer revokeIf(ctx, &err, half)
	if err := mpicx.Allreduce(half, []int{1}, []int{0}, mpicx.Sum).Wait(ctx); err != nil {
		return err
	}
	return dup.Barrier().Wait(ctx)
}

// agreeing, in a context, has a new communicator used only if all have it: under
// ErrorsReturn a Wait for it may report that its parent was revoked meanwhile.
type agreeing struct{}

func have(ctx context.Context, parent *mpicx.Comm, f *future.Future[*mpicx.Comm]) (*mpicx.Comm, error) {
	comm, err := f.Get(ctx)
	if ctx.Value(agreeing{}) == nil {
		return comm, err
	}
	flag := 1
	if err != nil {
		flag = 0
	}
	all, agreeErr := parent.Agree(flag).Get(ctx)
	if all == 0 && err == nil {
		err = mpicx.ErrRevoked // or agreeErr
	}
	return comm, errors.Join(err, agreeErr)
}

func revokeIf(ctx context.Context, err *error, comm *mpicx.Comm) {
	if *err != nil {
		_ = comm.Revoke(ctx)
	}
}

func signalling(ctx context.Context, comm *mpicx.Comm) error {
	for range 2 {
		err := comm.Try(ctx, func(ctx context.Context) error {
			if comm.Rank() == comm.Size()-1 {
				return errors.New("signalled")
			}
			return comm.Barrier().Wait(ctx)
		})
		if _, ok := errors.AsType[*mpicx.PropagatedError](err); !ok {
			return err
		}
	}
	return comm.Barrier().Wait(ctx)
}

func anySource(ctx context.Context, comm *mpicx.Comm) error {
	if comm.Rank() != 0 {
		if err := mpicx.Send(comm, []int{1}, 0, 3).Wait(ctx); err != nil {
			return err
		}
		return mpicx.Recv(comm, []int{0}, 0, 4).Wait(ctx)
	}
	for range comm.Size() - 1 {
		s, err := mpicx.Probe[int](comm, mpicx.AnySource, 3).Get(ctx)
		if err != nil {
			return err
		}
		if err := mpicx.Recv(comm, []int{0}, s.Source, 3).Wait(ctx); err != nil {
			return err
		}
		if err := mpicx.Send(comm, []int{1}, s.Source, 4).Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// An outcome is what a survivor came to, and told by names of communicators: who
// was dead when they were corrupted, and how large they are.
type outcome struct {
	comm string // on which all was done
	dead map[string]string
	size map[string]int
}

type program func(ctx context.Context, world *mpicx.Comm, o *outcome) error

// propagating repeats body until it succeeds at this rank, each time on the survivors.
func propagating(body func(context.Context, *mpicx.Comm) error) program {
	return func(ctx context.Context, world *mpicx.Comm, o *outcome) error {
		for comm := world; ; {
			err := comm.Guard(ctx, func(ctx context.Context) error { return body(ctx, comm) })
			if err == nil {
				o.comm = comm.String()
				return nil
			}
			if !expected(err) {
				return fmt.Errorf("body: %w (%T)", err, err)
			}
			// It is corrupted, by Guard at least.
			told := comm.Barrier().Wait(ctx)
			corrupted, ok := errors.AsType[*mpicx.CommCorruptedError](told)
			if !ok {
				return fmt.Errorf("Barrier: %v, after Guard left with %w (%T)", told, err, err)
			}
			o.dead[comm.String()] = fmt.Sprint(corrupted.Dead)
			if comm, err = comm.Shrink().Get(ctx); err != nil {
				return fmt.Errorf("shrink: %w (%T)", err, err)
			}
			o.size[comm.String()] = comm.Size()
		}
	}
}

// returning does body until all have done it.
func returning(body func(context.Context, *mpicx.Comm) error) program {
	return func(ctx context.Context, world *mpicx.Comm, o *outcome) error {
		world.SetErrhandler(mpicx.ErrorsReturn)
		ctx = context.WithValue(ctx, agreeing{}, true)
		for comm := world; ; {
			flag := 1
			if err := body(ctx, comm); err != nil {
				if !expected(err) {
					return fmt.Errorf("body: %w (%T)", err, err)
				}
				flag = 0
				if err := comm.Revoke(ctx); err != nil {
					return err
				}
			}
			flag, err := comm.Agree(flag).Get(ctx)
			if err == nil && flag == 1 {
				o.comm = comm.String()
				return nil
			}
			if _, dead := errors.AsType[*mpicx.ProcFailedError](err); err != nil && !dead {
				return fmt.Errorf("agree: %w (%T)", err, err)
			}
			if comm, err = comm.Shrink().Get(ctx); err != nil {
				return fmt.Errorf("shrink: %w (%T)", err, err)
			}
			o.size[comm.String()] = comm.Size()
		}
	}
}

func expected(err error) bool {
	_, corrupted := errors.AsType[*mpicx.CommCorruptedError](err)
	_, dead := errors.AsType[*mpicx.ProcFailedError](err)
	return corrupted || dead || errors.Is(err, mpicx.ErrRevoked) || errors.Is(err, mpicx.ErrProcFailedPending)
}

// survive runs a program with the plan. It checks that all survivors end, and that they were told
// the same. It returns the ranks that were killed.
func survive(t *testing.T, n int, plan string, uniform bool, run program) []int {
	t.Helper()
	outcomes := make([]outcome, n)
	killed := mpicxtest.RunFaults(t, n, plan, func(ctx context.Context, world *mpicx.Comm) error {
		o := &outcomes[world.Rank()]
		o.dead, o.size = make(map[string]string), make(map[string]int)
		return run(ctx, world, o)
	})
	all := outcome{"", make(map[string]string), make(map[string]int)}
	ok := true
	for r, o := range outcomes {
		if slices.Contains(killed, r) {
			continue
		}
		ok = ok && o.comm != "" && agrees(all.dead, o.dead) && agrees(all.size, o.size) &&
			(!uniform || all.comm == "" || all.comm == o.comm)
		all.comm = o.comm
	}
	if !ok {
		t.Fatalf("%d ranks, %s: %+v", n, plan, outcomes)
	}
	return killed
}

// agrees adds b to a, and says whether both have the same where both have
// something.
func agrees[V comparable](a, b map[string]V) bool {
	for k, v := range b {
		if old, ok := a[k]; ok && old != v {
			return false
		}
		a[k] = v
	}
	return true
}

// open are programs that mpicx does not always survive so far.
var open = map[string]string{
	"returning/signalling": "an Agree under way ends with the verdict of a round, elsewhere with its decision",
}

// Whoever dies whenever, the survivors end, and alike.
func TestExhaustive(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	for name, body := range bodies {
		for n := 3; n <= 5; n++ {
			for r := range n {
				for way, p := range map[string]program{"propagating": propagating(body), "returning": returning(body)} {
					t.Run(fmt.Sprintf("%s/%s/%d/%d", way, name, n, r), func(t *testing.T) {
						t.Parallel()
						if why := open[way+"/"+name]; why != "" {
							t.Skip(why)
						}
						exhaust(t, n, r, way == "returning", p)
					})
				}
			}
		}
	}
}

// exhaust has rank r die at every moment there is and, with few ranks, any other
// die after it.
func exhaust(t *testing.T, n, r int, uniform bool, p program) {
	count := map[string]int{}
	try := func(format string, args ...any) int {
		return len(survive(t, n, fmt.Sprintf(format, args...), uniform, p))
	}
	for k := 1; try("kill %d at operation %d", r, k) > 0; k++ {
		count["operation"]++
		for other := range n {
			if other == r || n >= 5 || n == 4 && buildtags.Race {
				continue
			}
			for _, protocol := range fault.Protocols {
				for m := 1; try("kill %d at operation %d; kill %d in %s message %d", r, k, other, protocol, m) == 2; m++ {
					count["then "+protocol]++
				}
			}
			for m := 1; n == 3 && !buildtags.Race && try("kill %d at operation %d; kill %d at operation %d", r, k, other, m) == 2; m++ {
				count["then operation"]++
			}
		}
	}
	for _, c := range []string{"Barrier", "Allreduce"} {
		for k := range 6 { // there may be steps in which a rank has nothing to do
			count[c] += try("kill %d in %s step %d", r, c, k+1)
		}
	}
	for _, protocol := range fault.Protocols {
		for k := 1; try("kill %d in %s message %d", r, protocol, k) > 0; k++ {
			count[protocol]++
		}
	}
	t.Log(count)
}

// Ranks that die at random: more of them, and more deaths.
func TestRandom(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	for seed := range 30 {
		survive(t, 8, fmt.Sprintf("kill any 3 random seed %d of 40", seed), false, propagating(basic))
		survive(t, 8, fmt.Sprintf("kill any 3 random seed %d of 40", seed), true, returning(basic))
	}
}

// A rank ends wherever its moment comes, and whatever its goroutine does then.
func TestKilledAnywhere(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	ends := func(name, plan string, fn func(ctx context.Context, world *mpicx.Comm)) {
		t.Run(name, func(t *testing.T) {
			killed := mpicxtest.RunFaults(t, 2, plan, func(ctx context.Context, world *mpicx.Comm) error {
				world.SetErrhandler(mpicx.ErrorsReturn)
				if world.Rank() == 0 {
					fn(ctx, world)
					t.Error("rank 0 lives")
				}
				time.Sleep(time.Hour)
				if err := mpicx.Recv(world, []int{0}, 0, 1).Wait(ctx); !expected(err) {
					return fmt.Errorf("got %w", err)
				}
				return nil
			})
			require.Equal(t, []int{0}, killed)
		})
	}
	ends("in Recv", "kill 0 at operation 1", func(ctx context.Context, world *mpicx.Comm) {
		_ = mpicx.Recv(world, []int{0}, 1, 2).Wait(ctx)
	})
	ends("in a collective", "kill 0 in Allreduce step 2", func(ctx context.Context, world *mpicx.Comm) {
		_ = mpicx.Allreduce(world, []int{1}, []int{0}, mpicx.Sum).Wait(ctx)
	})
	// Others are what the goroutine waits for when another operation kills it.
	die := func(world *mpicx.Comm) {
		go func() {
			time.Sleep(time.Second)
			_ = mpicx.Probe[int](world, 1, 9)
		}()
	}
	ends("blocked in Recv", "kill 0 at operation 2", func(ctx context.Context, world *mpicx.Comm) {
		die(world)
		_ = mpicx.Recv(world, []int{0}, 1, 2).Wait(context.Background())
	})
	ends("blocked in Agree", "kill 0 at operation 1", func(ctx context.Context, world *mpicx.Comm) {
		die(world)
		_ = world.Agree(1).Wait(ctx)
	})
	ends("blocked in Shrink", "kill 0 at operation 1", func(ctx context.Context, world *mpicx.Comm) {
		die(world)
		_ = world.Shrink().Wait(ctx)
	})
	ends("blocked in Dup", "kill 0 at operation 1", func(ctx context.Context, world *mpicx.Comm) {
		die(world)
		_ = world.Dup().Wait(ctx)
	})
	ends("blocked for a signal", "kill 0 at operation 1", func(ctx context.Context, world *mpicx.Comm) {
		die(world)
		_ = world.SignalError(ctx, 1)
	})
	ends("in Try", "kill 0 at operation 1", func(ctx context.Context, world *mpicx.Comm) {
		_ = world.Try(ctx, func(ctx context.Context) error { return mpicx.Recv(world, []int{0}, 1, 2).Wait(ctx) })
	})
	ends("computing", "kill 0 at operation 1", func(ctx context.Context, world *mpicx.Comm) {
		die(world)
		time.Sleep(time.Minute)
		_ = mpicx.Send(world, []int{1}, 1, 1)
	})
	ends("asking", "kill 0 at operation 1", func(ctx context.Context, world *mpicx.Comm) {
		die(world)
		time.Sleep(time.Minute)
		_ = world.Err()
	})
}

// Every collective that a plan may name is found by that name.
func TestCollectives(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	for _, name := range fault.Collectives {
		fn := collectives[name]
		require.NotNil(t, fn, name)
		deaths := 0
		for k := 1; k <= 3; k++ {
			deaths += len(mpicxtest.RunFaults(t, 2, fmt.Sprintf("kill 1 in %s step %d call 2", name, k), func(ctx context.Context, world *mpicx.Comm) error {
				world.SetErrhandler(mpicx.ErrorsReturn)
				_ = fn(world).Wait(ctx)
				_ = fn(world).Wait(ctx) // the survivor's may fail
				return nil
			}))
		}
		require.NotZero(t, deaths, name)
	}
	require.Len(t, collectives, len(fault.Collectives))
}

func add(a, b int) int { return a + b }

// ints returns a buffer.
func ints(length int) []int { return make([]int, length) }

var ones = []int{1, 1}

// grid makes a line of all ranks.
func grid(c *mpicx.Comm) *future.Future[*mpicx.Cart] {
	return mpicx.CartCreate(c, []int{c.Size()}, nil)
}

// onGrid calls fn on one, if there is any.
func onGrid(fn func(*mpicx.Cart) future.Waiter) func(*mpicx.Comm) future.Waiter {
	return func(c *mpicx.Comm) future.Waiter {
		c.SetErrhandler(mpicx.ErrorsReturn)
		g := grid(c)
		line, err := g.Get(context.Background())
		if err != nil {
			return g
		}
		return fn(line)
	}
}

// merged makes an Intercomm of two ranks, and merges it.
func merged(c *mpicx.Comm) future.Waiter {
	split := c.Split(c.Rank(), 0)
	own, err := split.Get(context.Background())
	if err != nil {
		return split
	}
	created := mpicx.CreateIntercomm(own, 0, c, 1-c.Rank(), 1)
	ic, err := created.Get(context.Background())
	if err != nil {
		return created
	}
	return ic.Merge(c.Rank() > 0)
}

// exchanged makes a Halo, and uses it.
func exchanged(g *mpicx.Cart) future.Waiter {
	made := mpicx.NewHalo[int](g, []int{1}, 1, false)
	h, err := made.Get(context.Background())
	if err != nil {
		return made
	}
	return h.Start(ints(3))
}

var collectives = map[string]func(c *mpicx.Comm) future.Waiter{
	"Barrier":                func(c *mpicx.Comm) future.Waiter { return c.Barrier() },
	"Bcast":                  func(c *mpicx.Comm) future.Waiter { return mpicx.Bcast(c, ints(1), 0) },
	"BcastValue":             func(c *mpicx.Comm) future.Waiter { return mpicx.BcastValue(c, 1, 0) },
	"Reduce":                 func(c *mpicx.Comm) future.Waiter { return mpicx.Reduce(c, ints(1), ints(1), mpicx.Sum, 0) },
	"ReduceFunc":             func(c *mpicx.Comm) future.Waiter { return mpicx.ReduceFunc(c, ints(1), ints(1), add, 0) },
	"ReduceValue":            func(c *mpicx.Comm) future.Waiter { return mpicx.ReduceValue(c, 1, add, 0) },
	"Allreduce":              func(c *mpicx.Comm) future.Waiter { return mpicx.Allreduce(c, ints(1), ints(1), mpicx.Sum) },
	"AllreduceFunc":          func(c *mpicx.Comm) future.Waiter { return mpicx.AllreduceFunc(c, ints(1), ints(1), add) },
	"AllreduceValue":         func(c *mpicx.Comm) future.Waiter { return mpicx.AllreduceValue(c, 1, add) },
	"ReduceScatterBlock":     func(c *mpicx.Comm) future.Waiter { return mpicx.ReduceScatterBlock(c, ints(2), ints(1), mpicx.Sum) },
	"ReduceScatterBlockFunc": func(c *mpicx.Comm) future.Waiter { return mpicx.ReduceScatterBlockFunc(c, ints(2), ints(1), add) },
	"ReduceScatter":          func(c *mpicx.Comm) future.Waiter { return mpicx.ReduceScatter(c, ints(2), ints(1), ones, mpicx.Sum) },
	"ReduceScatterFunc":      func(c *mpicx.Comm) future.Waiter { return mpicx.ReduceScatterFunc(c, ints(2), ints(1), ones, add) },
	"Scan":                   func(c *mpicx.Comm) future.Waiter { return mpicx.Scan(c, ints(1), ints(1), mpicx.Sum) },
	"ScanFunc":               func(c *mpicx.Comm) future.Waiter { return mpicx.ScanFunc(c, ints(1), ints(1), add) },
	"ScanValue":              func(c *mpicx.Comm) future.Waiter { return mpicx.ScanValue(c, 1, add) },
	"Exscan":                 func(c *mpicx.Comm) future.Waiter { return mpicx.Exscan(c, ints(1), ints(1), mpicx.Sum) },
	"ExscanFunc":             func(c *mpicx.Comm) future.Waiter { return mpicx.ExscanFunc(c, ints(1), ints(1), add) },
	"ExscanValue":            func(c *mpicx.Comm) future.Waiter { return mpicx.ExscanValue(c, 1, add) },
	"Gather":                 func(c *mpicx.Comm) future.Waiter { return mpicx.Gather(c, ints(1), ints(2), 0) },
	"GatherValue":            func(c *mpicx.Comm) future.Waiter { return mpicx.GatherValue(c, 1, 0) },
	"Gatherv":                func(c *mpicx.Comm) future.Waiter { return mpicx.Gatherv(c, ints(1), ints(2), ones, 0) },
	"Scatter":                func(c *mpicx.Comm) future.Waiter { return mpicx.Scatter(c, ints(2), ints(1), 0) },
	"ScatterValue":           func(c *mpicx.Comm) future.Waiter { return mpicx.ScatterValue(c, ints(2), 0) },
	"Scatterv":               func(c *mpicx.Comm) future.Waiter { return mpicx.Scatterv(c, ints(2), ones, ints(1), 0) },
	"Allgather":              func(c *mpicx.Comm) future.Waiter { return mpicx.Allgather(c, ints(1), ints(2)) },
	"AllgatherValue":         func(c *mpicx.Comm) future.Waiter { return mpicx.AllgatherValue(c, 1) },
	"Allgatherv":             func(c *mpicx.Comm) future.Waiter { return mpicx.Allgatherv(c, ints(1), ints(2), ones) },
	"Alltoall":               func(c *mpicx.Comm) future.Waiter { return mpicx.Alltoall(c, ints(2), ints(2)) },
	"Alltoallv":              func(c *mpicx.Comm) future.Waiter { return mpicx.Alltoallv(c, ints(2), ones, ints(2), ones) },
	"Fprintf": func(c *mpicx.Comm) future.Waiter {
		return future.Failed[int](c.Fprintf(context.Background(), io.Discard, ""))
	},
	"Split":       func(c *mpicx.Comm) future.Waiter { return c.Split(0, 0) },
	"SplitShared": func(c *mpicx.Comm) future.Waiter { return c.SplitShared(0) },
	"Create":      func(c *mpicx.Comm) future.Waiter { return c.Create(c.Group()) },
	"CartCreate":  func(c *mpicx.Comm) future.Waiter { return grid(c) },
	"GraphCreate": func(c *mpicx.Comm) future.Waiter { return mpicx.GraphCreate(c, nil, nil) },
	"Merge":       merged,
	"CartSub":     onGrid(func(g *mpicx.Cart) future.Waiter { return g.Sub(true) }),
	"NewHalo":     onGrid(func(g *mpicx.Cart) future.Waiter { return mpicx.NewHalo[int](g, []int{1}, 1, false) }),
	"Halo":        onGrid(exchanged),
	"NeighborAllgather": onGrid(func(g *mpicx.Cart) future.Waiter {
		return mpicx.NeighborAllgather(g, ints(1), ints(2))
	}),
	"NeighborAllgatherv": onGrid(func(g *mpicx.Cart) future.Waiter {
		return mpicx.NeighborAllgatherv(g, ints(1), ints(2), ones)
	}),
	"NeighborAlltoall": onGrid(func(g *mpicx.Cart) future.Waiter {
		return mpicx.NeighborAlltoall(g, ints(2), ints(2))
	}),
	"NeighborAlltoallv": onGrid(func(g *mpicx.Cart) future.Waiter {
		return mpicx.NeighborAlltoallv(g, ints(2), ones, ints(2), ones)
	}),
}

// A plan that is none fails the test, with every backend.
func TestBadPlans(t *testing.T) {
	for plan, want := range map[string]string{
		"kill 1 at dawn":        `line 1, column 11: "dawn", expected operation`,
		"kill 2 at operation 1": `"kill 2 at operation 1": rank 2, expected 0 to 1`,
	} {
		require.Contains(t, fatal(t, func(tb testing.TB) {
			mpicxtest.RunFaults(tb, 2, plan, func(context.Context, *mpicx.Comm) error { return nil })
		}), want)
	}
}

// fatal returns the text with which fn ends its test.
func fatal(t *testing.T, fn func(testing.TB)) string {
	tb := &recorder{TB: t}
	done := make(chan bool)
	go func() {
		defer close(done)
		fn(tb)
	}()
	<-done
	return tb.fatal
}

// Without deaths a plan runs with each backend. A plan with deaths tests nothing with a backend
// that does not see them, so there the test fails, or says by its name that it is skipped.
func TestDeathsThatNobodySees(t *testing.T) {
	ran := make(chan int, 2)
	require.Empty(t, mpicxtest.RunFaults(t, 2, "", func(_ context.Context, world *mpicx.Comm) error {
		ran <- world.Rank()
		return nil
	}))
	require.Len(t, ran, 2)
	skipped := false
	t.Run("by name", func(t *testing.T) {
		defer func() { skipped = t.Skipped() }()
		mpicxtest.NeedsULFM(t)
	})
	require.Equal(t, mpicx.Backend != "ulfm", skipped)
	for _, plan := range []string{"kill 1 at operation 1", "must kill 1 at operation 1", "kill any 1 random seed 1 of 1"} {
		if skipped {
			require.Equal(t, fmt.Sprintf("plan %q: backend %s sees no process die, expected -tags ulfm, or a call of mpicxtest.NeedsULFM, which skips the test", plan, mpicx.Backend),
				fatal(t, func(tb testing.TB) { mpicxtest.RunFaults(tb, 2, plan, nil) }))
		}
	}
}

// Each rank dies once at each of its operations, as RunFaults counts them.
func TestEveryDeath(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	for name, body := range bodies {
		t.Run(name, func(t *testing.T) {
			const n = 3
			var begun, ended atomic.Int32
			run := func(ctx context.Context, world *mpicx.Comm) error {
				begun.Add(1)
				o := outcome{"", make(map[string]string), make(map[string]int)}
				err := propagating(body)(ctx, world, &o)
				ended.Add(1)
				return err
			}
			operations := 0
			for rank := range n {
				for k := 1; len(mpicxtest.RunFaults(t, n, fmt.Sprintf("kill %d at operation %d", rank, k), run)) > 0; k++ {
					operations++
				}
			}
			begun.Store(0)
			ended.Store(0)
			mpicxtest.EveryDeath(t, n, run)
			require.Equal(t, n+n*operations, int(begun.Load()))
			require.Equal(t, n+(n-1)*operations, int(ended.Load()))
		})
	}
}

const failingEveryDeathEnv = "MPICX_TEST_FAILING_EVERY_DEATH"

var failingEveryDeath = map[string]struct {
	ranks   int
	program func(context.Context, *mpicx.Comm) error
}{
	"one rank is missed": {3, func(ctx context.Context, world *mpicx.Comm) error {
		for range 2 {
			err := world.Barrier().Wait(ctx)
			if c, ok := errors.AsType[*mpicx.CommCorruptedError](err); err != nil && (!ok || c.Dead[0] == 1) {
				return err
			}
		}
		return nil
	}},
	"fails anyway": {2, func(context.Context, *mpicx.Comm) error { return errors.New("a bug") }},
	"alone":        {1, func(context.Context, *mpicx.Comm) error { return nil }},
}

func TestFailingEveryDeath(t *testing.T) {
	if c, asked := failingEveryDeath[os.Getenv(failingEveryDeathEnv)]; asked {
		mpicxtest.EveryDeath(t, c.ranks, c.program)
		return
	}
	mpicxtest.NeedsULFM(t)
	for _, c := range []struct{ name, pattern, want, unwanted string }{
		{"one rank is missed", "", `plan "kill 1 at operation 1", killed [1]`, "kill 0"},
		{"one rank is missed", "/^kill_1_at_operation_2$", `plan "kill 1 at operation 2", killed [1]`, "operation 1"}, // replayed
		{"fails anyway", "", `2 ranks, plan "", killed []`, "kill "},
		{"alone", "", "1 ranks begin no operation, expected one at which to kill a rank", "kill 0"},
	} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFailingEveryDeath$"+c.pattern, "-test.timeout=5m")
		cmd.Env = append(os.Environ(), failingEveryDeathEnv+"="+c.name)
		out, err := cmd.CombinedOutput()
		require.Error(t, err)
		require.Contains(t, string(out), c.want)
		require.NotContains(t, string(out), c.unwanted)
	}
}

type recorder struct {
	testing.TB
	fatal string
}

func (r *recorder) Fatal(args ...any) {
	r.fatal = fmt.Sprint(args...)
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) { r.Fatal(fmt.Sprintf(format, args...)) }
