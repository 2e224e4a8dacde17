package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// A wrong program makes a collective call at rank 0 and another one at the others.
type wrong struct {
	zero, others callee
	number       int // of the call
}

// wrongs are the pairs of calls that differ, and of these each every-th.
func wrongs(zero, others []callee, every int) (all []*wrong) {
	k := 0
	for z, o := range product(zero, others) {
		if k++; z.text != o.text && k%every == 0 {
			all = append(all, &wrong{z, o, 1})
		}
	}
	return all
}

func (w *wrong) String() string { return fmt.Sprintf("%s and %s", w.zero.text, w.others.text) }

// at returns the call of a rank.
func (w *wrong) at(rank int) callee {
	if rank == 0 {
		return w.zero
	}
	return w.others
}

// play makes the calls, and then a Barrier if they have needed nobody.
func (w *wrong) play(ctx context.Context, p place) error {
	mpicx.Throw(w.at(p.Rank()).begin(p).Wait(ctx))
	return barrier(ctx, p.Comm)
}

var differs = regexp.MustCompile(`^mpicx: \w+: (.+) at rank (\d+), (.+) at rank (\d+), both as collective call (\d+) of world[\w().]*, expected the same at all ranks(?:; and \d+ more)?(?:; dead: \[.*\])?$`)

// check says whether text is that of an error of the program.
func (w *wrong) check(text string) error {
	m := differs.FindStringSubmatch(text[max(0, strings.LastIndex(text, "mpicx: ")):])
	if m == nil {
		return fmt.Errorf("%v: the text is %q", w, text)
	}
	first, _ := strconv.Atoi(m[2])
	second, _ := strconv.Atoi(m[4])
	if m[1] != w.at(first).text || m[3] != w.at(second).text || first >= second || m[5] != strconv.Itoa(w.number) {
		return fmt.Errorf("%v, in call %d: the text is %q", w, w.number, text)
	}
	return nil
}

// isOfAnother says whether the text is of a mismatch that is found only in what follows the calls:
// an agreement, or the second of the two calls that a TryAll and a CreateIntercomm count as.
func (w *wrong) isOfAnother(text string) bool {
	zero, others := w.zero.text, w.others.text
	for _, double := range []string{"TryAll", "CreateIntercomm"} {
		if (zero == double || others == double) && strings.Contains(text, double+" at rank") && strings.Contains(text, fmt.Sprint("both as collective call ", w.number+1)) {
			return true
		}
	}
	both := "the ranks call %s and %s in the same place"
	return strings.Contains(text, fmt.Sprintf(both, zero, others)) || strings.Contains(text, fmt.Sprintf(both, others, zero))
}

// checkAll says whether all failures are errors of w, or have one of the other messages.
func checkAll(err error, w *wrong, others ...string) error {
	p, ok := errors.AsType[*mpicx.PropagatedError](err)
	if !ok {
		return fmt.Errorf("%v: got %w", w, err)
	}
	for _, f := range p.Failures {
		if err := w.check(f.Message); err != nil && !w.isOfAnother(f.Message) && !slices.Contains(others, f.Message) {
			return err
		}
	}
	return nil
}

// haltedIdle makes a communicator of two ranks, of which rank 1 is halted while no operation is
// pending: its call has needed no other rank, and then rank 0 makes another call.
func haltedIdle(ctx context.Context, world *mpicx.Comm) *mpicx.Comm {
	g := mpicx.GraphCreate(world, nil, nil).MustGet(ctx)
	if world.Rank() == 1 {
		mpicx.NeighborAllgather(g, []int{1}, nil).MustWait(ctx)
		settle()
	}
	settle()
	if world.Rank() == 0 {
		_ = mpicx.Bcast(g.Comm, []int{1}, 0).Wait(ctx)
	}
	return g.Comm
}

// M3: a mismatch that no operation has reported is reported to all by the end of Try.
func TestMismatchAtTheEndOfTry(t *testing.T) {
	fakeTime(t)
	mpicxtest.Run(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		err := world.Try(ctx, func(ctx context.Context) error {
			c := haltedIdle(ctx, world)
			if err := c.Try(ctx, succeeds); err != nil || c.Rank() > 0 {
				return err
			}
			return c.Barrier().Wait(ctx)
		})
		require.ErrorContains(t, err, "both as collective call 1 of world.graphcreate1")
		return nil
	})
}

// M3: it is reported by the end of the program, too, and peers are told.
func TestMismatchAtTheEndOfTheProgram(t *testing.T) {
	var told error
	jobs(t, 2, func(err error) {
		require.ErrorContains(t, err, "both as collective call 1 of world.graphcreate1")
		require.NoError(t, corruption(told, 1))
	}, func(ctx context.Context, world *mpicx.Comm) error {
		haltedIdle(ctx, world)
		if world.Rank() == 0 {
			told = mpicx.Recv(world, []int{0}, 1, 0).Wait(ctx)
		}
		return nil
	})
}

// Counts that differ between ranks are an error, even if their sums are equal.
func TestCountsDiffer(t *testing.T) {
	for _, algorithm := range []string{"", "tree", "star", "direct"} {
		t.Run("goroutines, "+algorithm, func(t *testing.T) {
			collective.Forced = map[string]string{"ReduceScatter": algorithm}
			if algorithm != "star" {
				collective.Forced["Allgatherv"] = algorithm
			}
			defer func() { collective.Forced = nil }()
			mpicxtest.Run(t, 3, countsDiffer)
		})
	}
	t.Run("processes", func(t *testing.T) { mpicxtest.RunProcesses(t, 3, countsDiffer) })
}

func countsDiffer(ctx context.Context, world *mpicx.Comm) error {
	for _, each := range []int{1, 10_000} {
		counts := [...][]int{{each, 2 * each, 3 * each}, {3 * each, 2 * each, each}, {2 * each, each, 3 * each}}[world.Rank()]
		mine, all := make([]int, counts[world.Rank()]), make([]int, 6*each)
		for name, call := range inOrder(map[string]func() future.Waiter{
			"Allgatherv":        func() future.Waiter { return mpicx.Allgatherv(world, mine, all, counts) },
			"ReduceScatter":     func() future.Waiter { return mpicx.ReduceScatter(world, all, mine, counts, mpicx.Sum) },
			"ReduceScatterFunc": func() future.Waiter { return mpicx.ReduceScatterFunc(world, all, mine, counts, add) },
		}) {
			err := world.TryAll(ctx, func(ctx context.Context) error { return call().Wait(ctx) })
			p, ok := errors.AsType[*mpicx.PropagatedError](err)
			if !ok || !strings.HasPrefix(p.Failures[0].Message, "mpicx: "+name+":") || !strings.Contains(p.Failures[0].Message, "with other counts than at rank") {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

// A meeting is where ranks make calls: rank 0 one of these, and the others one of those.
type meeting struct {
	name         string
	make         func(context.Context, *mpicx.Comm) (place, error)
	zero, others []callee
	number       int // of the calls
}

// Whichever calls goroutine ranks have made in one place, also if they do nothing then but wait for
// each other, a plain Run ends with an error that has both.
func TestMismatchBetweenGoroutines(t *testing.T) {
	fakeTime(t)
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		for _, n := range []int{2, 3} {
			for _, m := range []meeting{
				{"grid", grid, inGrids(n), inGrids(n), 1},
				{"graph", toZero, neighborly(n-1, 0), callees(n), 1},
				{"halo", withHalo, []callee{exchanged}, inGrids(n), 2},
				{"others' halo", withHalo, inGrids(n), []callee{exchanged}, 2},
				{"union", union, inUnions(n), inUnions(n), 1},
			} {
				t.Run(fmt.Sprintf("%s of %d", m.name, n), func(t *testing.T) { m.play(t, n, backend) })
			}
		}
	})
}

var hasEnded = regexp.MustCompile(`(has|have) (returned|died|returned, or released the communicator)$`)

// play has n ranks make each pair of different calls.
func (m meeting) play(t *testing.T, n int, backend mpicx.Option) {
	every := 1
	if testing.Short() {
		every = 7
	}
	for _, w := range wrongs(m.zero, m.others, every) {
		w.number = m.number
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			err := mpicx.Run(ctx, func(ctx context.Context, world *mpicx.Comm) error {
				p, err := m.make(ctx, world)
				if err != nil {
					return err
				}
				return w.play(ctx, p)
			}, mpicx.WithRanks(n), backend)
			require.Error(t, err, "%v, %d ranks", w, n)
			wrong := 0
			for _, line := range strings.Split(err.Error(), "\n") {
				switch e := w.check(line); {
				case e == nil || w.isOfAnother(line):
					wrong++
				case !hasEnded.MatchString(line): // an agreement may tell of the other's end
					require.NoError(t, e, "%v", err)
				}
			}
			require.NotZero(t, wrong, "%v", err)
			require.NoError(t, ctx.Err(), "%v, %d ranks", w, n)
		})
	}
}

// M3: different calls are reported even if no program waits for either.
func TestMismatchOfBegunCalls(t *testing.T) {
	oneProcess(t)
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		for _, n := range []int{2, 3, 5} {
			calls := callees(n)
			calls = append(calls[:24:24], calls[slices.IndexFunc(calls, func(c callee) bool { return c.text == "Dup" })])
			for _, w := range wrongs(calls, calls, 7) {
				err := mpicx.Run(context.Background(), func(_ context.Context, world *mpicx.Comm) error {
					w.at(world.Rank()).begin(place{Comm: world})
					return nil
				}, mpicx.WithRanks(n), backend)
				if strings.HasSuffix(t.Name(), "ulfm") && (w.zero.text == "Dup" || w.others.text == "Dup") {
					assert.ErrorContains(t, err, "Dup", "%v, %d ranks", w, n) // perhaps that a rank has returned
				} else {
					assert.ErrorContains(t, err, w.zero.text+" at rank 0, "+w.others.text+" at rank", "%v, %d ranks", w, n)
				}
			}
		}
	})
}

// The error says in its class in what the calls differ.
func TestClassesOfMismatches(t *testing.T) {
	oneProcess(t)
	calls := make(map[string]callee)
	for _, c := range callees(2) {
		calls[c.text] = c
	}
	for want, texts := range map[mpicx.Class][2]string{
		mpicx.ClassOther: {"Barrier", "Allreduce(Sum, 3 × float64)"},
		mpicx.ClassOp:    {"Reduce(Sum, root 1, 3 × float64)", "Reduce(Max, root 1, 3 × float64)"},
		mpicx.ClassRoot:  {"Bcast(root 0, 3 × float64)", "Bcast(root 1, 3 × float64)"},
		mpicx.ClassCount: {"Bcast(root 0, 3 × float64)", "Bcast(root 0, 4 × float64)"},
		mpicx.ClassType:  {"Bcast(root 0, 3 × float64)", "Bcast(root 0, 3 × int32)"},
	} {
		w := &wrong{calls[texts[0]], calls[texts[1]], 1}
		require.NoError(t, classIs(mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
			return w.play(ctx, place{Comm: world})
		}, mpicx.WithRanks(2)), want))
	}
}

// ofTwo begins an operation on two elements of each rank.
func ofTwo[T any](c *mpicx.Comm, operation string) future.Waiter {
	two, four := make([]T, 2), make([]T, 4)
	switch operation {
	case "Bcast":
		return mpicx.Bcast(c, two, 0)
	case "Scatter":
		return mpicx.Scatter(c, four, two, 0)
	case "Gather":
		return mpicx.Gather(c, two, four, 0)
	}
	return mpicx.Allgather(c, two, four)
}

// Structs of another size are another count: nothing is written past the smaller one.
func TestStructsOfAnotherSize(t *testing.T) {
	asBoth(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		for i, operation := range []string{"Bcast", "Scatter", "Gather", "Allgather", "Bcast"} {
			begin := ofTwo[[4]int64]
			if world.Rank() == 1 {
				begin = []func(*mpicx.Comm, string) future.Waiter{ofTwo[[2]int16], ofTwo[byte]}[i/4]
			}
			err := world.TryAll(ctx, func(ctx context.Context) error { return begin(world, operation).Wait(ctx) })
			if err == nil || !strings.Contains(err.Error(), "64 bytes of structs) at rank 0") {
				return fmt.Errorf("%s: %w", operation, err)
			}
		}
		return nil
	})
}

// afresh makes a grid for the next mismatch, once all ranks have been told of the one before.
func afresh(ctx context.Context, world *mpicx.Comm) (p place, err error) {
	for {
		err = world.TryAll(ctx, func(ctx context.Context) (err error) {
			p, err = grid(ctx, world)
			return err
		})
		if _, again := errors.AsType[*mpicx.PropagatedError](err); !again {
			return p, err
		}
	}
}

// Whichever calls two processes have made in one place, also if they do nothing then but wait for
// each other, all ranks are told.
func TestMismatchBetweenProcesses(t *testing.T) {
	for _, n := range []int{2, 3} {
		every := 11 * n
		if testing.Short() {
			every *= 7
		}
		mpicxtest.RunProcesses(t, n, func(ctx context.Context, world *mpicx.Comm) error {
			for _, w := range wrongs(inGrids(n), inGrids(n), every) {
				p, err := afresh(ctx, world)
				if err != nil {
					return err
				}
				mpicx.Throw(checkAll(world.TryAll(ctx, func(ctx context.Context) error { return w.play(ctx, p) }), w))
			}
			_, err := afresh(ctx, world)
			return err
		})
	}
}

// An error that a rank signals while others have made different calls comes to all, alone or with
// the mismatch; and then the communicator works.
func TestMismatchAndSignal(t *testing.T) {
	asBoth(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		all := callees(3)
		for round := range 18 {
			p, err := afresh(ctx, world)
			if err != nil {
				return err
			}
			w := &wrong{all[round%9], all[(round+4)%9], 1}
			err = world.TryAll(ctx, func(ctx context.Context) error {
				if world.Rank() < 2 {
					return w.play(ctx, p)
				}
				return errors.New("an alarm")
			})
			texts := ""
			for ; err != nil; err = world.TryAll(ctx, func(ctx context.Context) error { return barrier(ctx, world) }) {
				mpicx.Throw(checkAll(err, w, "an alarm"))
				texts += err.Error()
			}
			if !strings.Contains(texts, "an alarm") {
				return fmt.Errorf("%v: no alarm in %s", w, texts)
			}
		}
		return nil
	})
}

// A rank that has waited in vain for a collective operation may then call Agree, in which the
// others are, however long they have waited: that is no mismatch, as all of them may come to the
// operation later.
func TestAgreeAfterPatience(t *testing.T) {
	asBoth(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		var met future.Waiter
		if world.Rank() != 0 {
			met = world.Barrier()
			patient, cancel := context.WithTimeout(ctx, 300*time.Millisecond) // their calls are compared meanwhile
			defer cancel()
			mpicx.Throw(expect(met.Wait(patient), context.DeadlineExceeded))
		}
		mpicx.Throw(same("Agree", []int{world.Agree(min(1, world.Rank())).MustGet(ctx)}, []int{0}))
		if met == nil {
			met = world.Barrier()
		}
		return met.Wait(ctx)
	})
}
