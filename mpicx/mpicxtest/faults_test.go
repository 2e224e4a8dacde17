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

// deriving revokes what it made if it fails.
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

// propagating does body until this rank has done it, each time on what is left.
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

// survive runs a program with the plan, and checks that all survivors end, and
// were told the same. It returns who was killed.
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
				fn(ctx, world)
				fn(ctx, world) // the survivor's may fail
				return nil
			}))
		}
		require.NotZero(t, deaths, name)
	}
	require.Len(t, collectives, len(fault.Collectives))
}

func add(a, b int) int { return a + b }

// grid makes a line of all ranks.
func grid(ctx context.Context, c *mpicx.Comm) (*mpicx.Cart, error) {
	return mpicx.CartCreate(c, []int{c.Size()}, nil).Get(ctx)
}

// onGrid calls fn on one, if there is any.
func onGrid(fn func(ctx context.Context, g *mpicx.Cart)) func(context.Context, *mpicx.Comm) {
	return func(ctx context.Context, c *mpicx.Comm) {
		c.SetErrhandler(mpicx.ErrorsReturn)
		if g, err := grid(ctx, c); err == nil {
			fn(ctx, g)
		}
	}
}

var collectives = map[string]func(context.Context, *mpicx.Comm){
	"Barrier":    func(ctx context.Context, c *mpicx.Comm) { _ = c.Barrier().Wait(ctx) },
	"Bcast":      func(ctx context.Context, c *mpicx.Comm) { _ = mpicx.Bcast(c, []int{1}, 0).Wait(ctx) },
	"BcastValue": func(ctx context.Context, c *mpicx.Comm) { _ = mpicx.BcastValue(c, 1, 0).Wait(ctx) },
	"Reduce": func(ctx context.Context, c *mpicx.Comm) {
		_ = mpicx.Reduce(c, []int{1}, []int{0}, mpicx.Sum, 0).Wait(ctx)
	},
	"ReduceFunc": func(ctx context.Context, c *mpicx.Comm) {
		_ = mpicx.ReduceFunc(c, []int{1}, []int{0}, add, 0).Wait(ctx)
	},
	"Allreduce": func(ctx context.Context, c *mpicx.Comm) {
		_ = mpicx.Allreduce(c, []int{1}, []int{0}, mpicx.Sum).Wait(ctx)
	},
	"AllreduceFunc": func(ctx context.Context, c *mpicx.Comm) {
		_ = mpicx.AllreduceFunc(c, []int{1}, []int{0}, add).Wait(ctx)
	},
	"AllreduceValue": func(ctx context.Context, c *mpicx.Comm) { _ = mpicx.AllreduceValue(c, 1, add).Wait(ctx) },
	"ReduceValue":    func(ctx context.Context, c *mpicx.Comm) { _ = mpicx.ReduceValue(c, 1, add, 0).Wait(ctx) },
	"ScanValue":      func(ctx context.Context, c *mpicx.Comm) { _ = mpicx.ScanValue(c, 1, add).Wait(ctx) },
	"ExscanValue":    func(ctx context.Context, c *mpicx.Comm) { _ = mpicx.ExscanValue(c, 1, add).Wait(ctx) },
	"ScatterValue":   func(ctx context.Context, c *mpicx.Comm) { _ = mpicx.ScatterValue(c, []int{1, 2}, 0).Wait(ctx) },
	"ReduceScatterBlock": func(ctx context.Context, c *mpicx.Comm) {
		_ = mpicx.ReduceScatterBlock(c, []int{1, 2}, []int{0}, mpicx.Sum).Wait(ctx)
	},
	"ReduceScatterBlockFunc": func(ctx context.Context, c *mpicx.Comm) {
		_ = mpicx.ReduceScatterBlockFunc(c, []int{1, 2}, []int{0}, add).Wait(ctx)
	},
	"Fprintf":     func(ctx context.Context, c *mpicx.Comm) { _ = c.Fprintf(ctx, io.Discard, "") },
	"Split":       func(ctx context.Context, c *mpicx.Comm) { _ = c.Split(0, 0).Wait(ctx) },
	"SplitShared": func(ctx context.Context, c *mpicx.Comm) { _ = c.SplitShared(0).Wait(ctx) },
	"Create":      func(ctx context.Context, c *mpicx.Comm) { _ = c.Create(c.Group()).Wait(ctx) },
	"CartCreate":  func(ctx context.Context, c *mpicx.Comm) { _, _ = grid(ctx, c) },
	"GraphCreate": func(ctx context.Context, c *mpicx.Comm) { _ = mpicx.GraphCreate(c, nil, nil).Wait(ctx) },
	"Merge": func(ctx context.Context, c *mpicx.Comm) {
		own, err := c.Split(c.Rank(), 0).Get(ctx)
		if err != nil {
			return
		}
		if ic, err := mpicx.CreateIntercomm(own, 0, c, 1-c.Rank(), 1).Get(ctx); err == nil {
			_ = ic.Merge(c.Rank() > 0).Wait(ctx)
		}
	},
	"CartSub": onGrid(func(ctx context.Context, g *mpicx.Cart) { _ = g.Sub(true).Wait(ctx) }),
	"NewHalo": onGrid(func(ctx context.Context, g *mpicx.Cart) { _ = mpicx.NewHalo[int](g, []int{1}, 1, false).Wait(ctx) }),
	"Halo": onGrid(func(ctx context.Context, g *mpicx.Cart) {
		if h, err := mpicx.NewHalo[int](g, []int{1}, 1, false).Get(ctx); err == nil {
			_ = h.Start(make([]int, 3)).Wait(ctx)
		}
	}),
	"NeighborAllgather": onGrid(func(ctx context.Context, g *mpicx.Cart) {
		_ = mpicx.NeighborAllgather(g, []int{1}, make([]int, 2)).Wait(ctx)
	}),
	"NeighborAllgatherv": onGrid(func(ctx context.Context, g *mpicx.Cart) {
		_ = mpicx.NeighborAllgatherv(g, []int{1}, make([]int, 2), []int{1, 1}).Wait(ctx)
	}),
	"NeighborAlltoall": onGrid(func(ctx context.Context, g *mpicx.Cart) {
		_ = mpicx.NeighborAlltoall(g, []int{1, 2}, make([]int, 2)).Wait(ctx)
	}),
	"NeighborAlltoallv": onGrid(func(ctx context.Context, g *mpicx.Cart) {
		_ = mpicx.NeighborAlltoallv(g, []int{1, 2}, []int{1, 1}, make([]int, 2), []int{1, 1}).Wait(ctx)
	}),
	"Scan": func(ctx context.Context, c *mpicx.Comm) {
		_ = mpicx.Scan(c, []int{1}, []int{0}, mpicx.Sum).Wait(ctx)
	},
	"ScanFunc": func(ctx context.Context, c *mpicx.Comm) {
		_ = mpicx.ScanFunc(c, []int{1}, []int{0}, add).Wait(ctx)
	},
	"Exscan": func(ctx context.Context, c *mpicx.Comm) {
		_ = mpicx.Exscan(c, []int{1}, []int{0}, mpicx.Sum).Wait(ctx)
	},
	"ExscanFunc": func(ctx context.Context, c *mpicx.Comm) {
		_ = mpicx.ExscanFunc(c, []int{1}, []int{0}, add).Wait(ctx)
	},
	"ReduceScatter": func(ctx context.Context, c *mpicx.Comm) {
		_ = mpicx.ReduceScatter(c, []int{1, 2}, []int{0}, []int{1, 1}, mpicx.Sum).Wait(ctx)
	},
	"ReduceScatterFunc": func(ctx context.Context, c *mpicx.Comm) {
		_ = mpicx.ReduceScatterFunc(c, []int{1, 2}, []int{0}, []int{1, 1}, add).Wait(ctx)
	},
	"Gather": func(ctx context.Context, c *mpicx.Comm) {
		_ = mpicx.Gather(c, []int{1}, []int{0, 0}, 0).Wait(ctx)
	},
	"GatherValue": func(ctx context.Context, c *mpicx.Comm) { _ = mpicx.GatherValue(c, 1, 0).Wait(ctx) },
	"Gatherv": func(ctx context.Context, c *mpicx.Comm) {
		_ = mpicx.Gatherv(c, []int{1}, []int{0, 0}, []int{1, 1}, 0).Wait(ctx)
	},
	"Scatter": func(ctx context.Context, c *mpicx.Comm) {
		_ = mpicx.Scatter(c, []int{0, 0}, []int{1}, 0).Wait(ctx)
	},
	"Scatterv": func(ctx context.Context, c *mpicx.Comm) {
		_ = mpicx.Scatterv(c, []int{0, 0}, []int{1, 1}, []int{1}, 0).Wait(ctx)
	},
	"Allgather": func(ctx context.Context, c *mpicx.Comm) {
		_ = mpicx.Allgather(c, []int{1}, []int{0, 0}).Wait(ctx)
	},
	"AllgatherValue": func(ctx context.Context, c *mpicx.Comm) { _ = mpicx.AllgatherValue(c, 1).Wait(ctx) },
	"Allgatherv": func(ctx context.Context, c *mpicx.Comm) {
		_ = mpicx.Allgatherv(c, []int{1}, []int{0, 0}, []int{1, 1}).Wait(ctx)
	},
	"Alltoall": func(ctx context.Context, c *mpicx.Comm) {
		_ = mpicx.Alltoall(c, []int{1, 2}, []int{0, 0}).Wait(ctx)
	},
	"Alltoallv": func(ctx context.Context, c *mpicx.Comm) {
		_ = mpicx.Alltoallv(c, []int{1, 2}, []int{1, 1}, []int{0, 0}, []int{1, 1}).Wait(ctx)
	},
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

// Without deaths a plan runs with each backend. With deaths nothing is tested where nobody sees them, so the
// test fails there, or says by name that it is skipped.
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

// Each rank dies once at each of its operations, which are those that RunFaults counts.
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
