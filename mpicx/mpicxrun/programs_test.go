//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/mpicx"
)

// programs are what the tests start.
var programs = map[string]func(){
	"sum": sum,
	"input": func() {
		rank(func(_ context.Context, world *mpicx.Comm) error {
			in, err := io.ReadAll(os.Stdin)
			fmt.Printf("rank %d: %d bytes\n", world.Rank(), len(in))
			return err
		})
	},
	"lines": func() {
		rank(func(context.Context, *mpicx.Comm) error {
			out := bufio.NewWriterSize(os.Stdout, 1000) // so that lines are written in parts
			for i := range 3000 {
				fmt.Fprintln(out, strings.Repeat("x", i%300)+"end")
			}
			fmt.Fprint(out, "no end of line")
			return out.Flush()
		})
	},
	"twice": func() {
		for range 2 {
			rank(barrier)
		}
	},
	"instance": func() {
		ctx := context.Background()
		i, err := mpicx.Initialize(ctx)
		must(err)
		rank(barrier)
		rank(barrier)
		fmt.Println("rank", i.World().Rank())
		must(i.Finalize(ctx))
	},
	"omitted": func() { // rank 1 returns; the others begin a call that it never makes, and return
		rank(func(ctx context.Context, world *mpicx.Comm) error {
			if world.Rank() != 1 {
				world.Barrier()
			}
			return nil
		}, backend())
	},
	"left to Finalize": func() { // rank 0 leaves a call, in Run or, with TEST_VICTIM, outside; its function panics
		ctx := context.Background()
		i, err := mpicx.Initialize(ctx, backend())
		must(err)
		who := i.World().Rank()
		program := func(ctx context.Context, world *mpicx.Comm) error {
			if who > 0 {
				if err := mpicx.Recv(world, make([]int, 1), 0, 0).Wait(ctx); err != nil {
					return err
				}
			} else {
				for to := 1; to < world.Size(); to++ {
					mpicx.Send(world, []int{1}, to, 0)
				}
			}
			f := mpicx.AllreduceFunc(world, []int{1}, []int{0}, func(a, b int) int {
				if who == 0 {
					panic("no sum")
				}
				return a + b
			})
			if who == 0 {
				return nil
			}
			return f.Wait(ctx)
		}
		if os.Getenv("TEST_VICTIM") != "" {
			dup := i.World().Dup().MustGet(ctx)
			must(i.World().Close(ctx)) // Finalize need not
			err = program(ctx, dup)
		} else {
			err = mpicx.Run(ctx, program, backend())
		}
		err = errors.Join(err, i.Finalize(ctx))
		text, _, _ := strings.Cut(fmt.Sprint(err), "\n")
		fmt.Printf("rank %d: %s\n", who, text)
	},
	"unrecorded": func() { // TEST_VICTIM has no directory for its timeline
		opts := []mpicx.Option{mpicx.WithTimeline(timelineDir()), backend()}
		fn := func(ctx context.Context, world *mpicx.Comm) error {
			err := world.Barrier().Wait(ctx)
			fmt.Println("told:", err)
			return err
		}
		switch ctx := context.Background(); os.Getenv("TEST_HOW") {
		case "spare":
			opts = append(opts, mpicx.WithSpares(1))
			fallthrough
		case "run":
			rank(fn, opts...)
		case "instance":
			i, err := mpicx.Initialize(ctx, opts...)
			must(err)
			must(errors.Join(fn(ctx, i.World()), i.Finalize(ctx)))
		}
	},
	"spare alone": func() { // all others are killed
		rank(func(ctx context.Context, c *mpicx.Comm) error {
			if err := c.Barrier().Wait(ctx); err != nil {
				return err
			}
			return kill()
		}, ulfm(), mpicx.WithSpares(1))
	},
	"spare": func() { // TEST_VICTIM, or every working rank, is killed
		ctx := context.Background()
		i, err := mpicx.Initialize(ctx, mpicx.WithSpares(1), hook.Backend[mpicx.Option](cmp.Or(os.Getenv("TEST_BACKEND"), "ulfm")))
		must(err)
		c := i.World()
		switch v := os.Getenv("TEST_VICTIM"); {
		case c == nil:
			fmt.Println("not needed")
		case c.Incarnation() == 0 && (v == strconv.Itoa(own()) || v == "all"):
			_ = kill()
		default:
			c, err = replacing(ctx, c)
			must(err)
			fmt.Printf("rank %d, incarnation %d\n", c.Rank(), c.Incarnation())
		}
		must(i.Finalize(ctx))
	},
	"each": func() { // what its argument says, in words; a number ends it with that status
		for _, word := range strings.Fields(os.Args[1+own()]) {
			switch word {
			case "run", "deadline":
				ctx := context.Background()
				if word == "deadline" {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, time.Second)
					defer cancel()
				}
				must(mpicx.Run(ctx, func(ctx context.Context, world *mpicx.Comm) error {
					fmt.Println("begins")
					return recovering(ctx, world, barrier)
				}, backend()))
			case "kill":
				_ = kill()
			case "sleep":
				fmt.Printf("pid %d %d\n", own(), os.Getpid())
				time.Sleep(time.Hour)
			default:
				status, err := strconv.Atoi(word)
				must(err)
				os.Exit(status)
			}
		}
	},
	"mixed": func() { // rank 0 has another error backend
		opt := blackChannel()
		if own() == 0 {
			opt = ulfm()
		}
		rank(barrier, opt)
	},
	"grandchild": func() { // rank 0 starts what finds its environment
		rank(func(ctx context.Context, world *mpicx.Comm) error {
			if world.Rank() == 0 {
				out, err := exec.Command(os.Args[0]).CombinedOutput()
				fmt.Printf("%s%v\n", out, err)
			}
			return world.Barrier().Wait(ctx)
		})
	},
	"nested": func() { // mpicxrun inside of mpicxrun
		c := exec.Command(os.Args[0], "-n", "2", os.Args[0])
		c.Env = append(os.Environ(), envRun+"=1")
		out, err := c.CombinedOutput()
		fmt.Printf("%s%v\n", out, err)
	},
	"mpirun": func() { // as if mpirun were inside of mpicxrun
		_ = os.Setenv("OMPI_COMM_WORLD_SIZE", "1")
		sum()
	},
	// With the black channel the first death ends the job. With TEST_STATUS and ulfm, the signal
	// ends all but rank 1, which learns of the deaths and returns.
	"forever": func() {
		rank(func(ctx context.Context, world *mpicx.Comm) error {
			status := os.Getenv("TEST_STATUS")
			if world.Rank() == 1 && status != "" {
				signal.Ignore(syscall.SIGINT, syscall.SIGTERM)
			}
			if err := world.Barrier().Wait(ctx); err != nil {
				return err
			}
			printPid(world)
			err := mpicx.Recv(world, []int{0}, mpicx.AnySource, 1).Wait(ctx)
			if status == "0" {
				return nil
			}
			return err
		}, backend())
	},
	"signals": func() {
		came := make(chan os.Signal, 10)
		signal.Notify(came, syscall.SIGINT, syscall.SIGTERM, syscall.SIGUSR1)
		rank(func(ctx context.Context, world *mpicx.Comm) error {
			printPid(world)
			for s := range came {
				fmt.Printf("rank %d: %v\n", world.Rank(), s)
				if s == syscall.SIGTERM {
					break
				}
			}
			return world.Barrier().Wait(ctx)
		})
	},
	"computing": func() { // the others never look whether one has died
		rank(func(ctx context.Context, world *mpicx.Comm) error {
			err := world.Barrier().Wait(ctx)
			printPid(world)
			if os.Getenv("TEST_DEAF") != "" {
				signal.Ignore(syscall.SIGTERM)
			}
			time.Sleep(time.Hour)
			return err
		}, blackChannel())
	},
	"rounds": func() { // until SIGTERM, whatever ranks die
		term := make(chan os.Signal, 1)
		signal.Notify(term, syscall.SIGTERM)
		rank(func(ctx context.Context, world *mpicx.Comm) error {
			printPid(world)
			survivors := 0
			err := recovering(ctx, world, func(ctx context.Context, c *mpicx.Comm) error {
				survivors = c.Size()
				return sumUntil(ctx, c, term)
			})
			if err == nil {
				fmt.Printf("rank %d: %d survivors\n", world.Rank(), survivors)
			}
			return err
		}, backend())
	},
	"exits": func() { // rank 1, in a goroutine, in the middle of its Run
		rank(func(ctx context.Context, world *mpicx.Comm) error {
			if world.Rank() == 1 {
				status, _ := strconv.Atoi(os.Args[1])
				go os.Exit(status)
			}
			return recovering(ctx, world, func(ctx context.Context, c *mpicx.Comm) error {
				var err error
				for c.Size() == world.Size() && err == nil {
					err = barrier(ctx, c)
				}
				return err
			})
		}, backend())
	},
	"ends": func() { // as its argument says
		full := errors.New("disk full")
		mpicx.Exit(mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
			work := func(ctx context.Context) error { return barrier(ctx, world) }
			if world.Rank() == 1 {
				work = func(context.Context) error { return full }
			}
			switch os.Args[1] {
			case "one":
				return work(ctx)
			case "all":
				return full
			case "try":
				return world.TryAll(ctx, work)
			case "death":
				if world.Rank() == 0 {
					_ = kill()
				}
				return cmp.Or(barrier(ctx, world), barrier(ctx, world))
			case "stop":
				if world.Rank() == 1 {
					must(world.Stop(ctx, full))
				}
				for {
					if err := cmp.Or(world.Stopping(ctx), barrier(ctx, world)); err != nil {
						return err
					}
				}
			}
			return nil
		}, backend(), mpicx.WithRanks(3)))
	},
	"child that stays": func() {
		rank(func(_ context.Context, world *mpicx.Comm) error {
			c := exec.Command("sleep", "3600")
			c.Stdout, c.Stderr = os.Stdout, os.Stderr
			if err := c.Start(); err != nil {
				return err
			}
			fmt.Printf("pid %d %d\n", world.Rank(), c.Process.Pid)
			return nil
		})
	},
}

func barrier(ctx context.Context, c *mpicx.Comm) error { return c.Barrier().Wait(ctx) }

// replacing returns the communicator after a barrier, before which those that have died are replaced.
func replacing(ctx context.Context, c *mpicx.Comm) (_ *mpicx.Comm, err error) {
	for err == nil && barrier(ctx, c) != nil {
		c, err = c.Replace().Get(ctx)
	}
	return c, err
}

// sum is the shortest of programs. TEST_RANKS is for WithRanks.
func sum() {
	var opts []mpicx.Option
	if n, err := strconv.Atoi(os.Getenv("TEST_RANKS")); err == nil {
		opts = append(opts, mpicx.WithRanks(n))
	}
	rank(func(ctx context.Context, world *mpicx.Comm) error {
		sum := []int{0}
		if err := mpicx.Allreduce(world, []int{world.Rank() + 1}, sum, mpicx.Sum).Wait(ctx); err != nil {
			return err
		}
		fmt.Printf("rank %d of %d: %d, %s\n", world.Rank(), world.Size(), sum[0], world.Transport())
		return nil
	}, opts...)
}

// backend is TEST_BACKEND, or the black channel.
func backend() mpicx.Option {
	return hook.Backend[mpicx.Option](cmp.Or(os.Getenv("TEST_BACKEND"), "blackchannel"))
}

// timelineDir is TEST_DIR or, at TEST_VICTIM, a directory that can't be made: below TEST_FILE.
func timelineDir() string {
	if os.Getenv("TEST_VICTIM") == strconv.Itoa(own()) {
		return filepath.Join(os.Getenv("TEST_FILE"), "below")
	}
	return os.Getenv("TEST_DIR")
}

// sumUntil sums up the ranks of c until a signal has come, which nobody receives.
func sumUntil(ctx context.Context, c *mpicx.Comm, signals <-chan os.Signal) error {
	sum := []int{0, 0}
	for sum[0] == 0 {
		if err := mpicx.Allreduce(c, []int{len(signals), 1}, sum, mpicx.Sum).Wait(ctx); err != nil {
			return err
		}
		if sum[1] != c.Size() {
			return fmt.Errorf("%d ranks in the sum, expected %d", sum[1], c.Size())
		}
	}
	return nil
}

// own is this process's rank.
func own() int {
	r, err := strconv.Atoi(os.Getenv("MPICXRUN_RANK"))
	if err != nil {
		panic(err)
	}
	return r
}

// recovering calls fn with the communicator of the survivors, until all of these have succeeded.
func recovering(ctx context.Context, world *mpicx.Comm, fn func(ctx context.Context, c *mpicx.Comm) error) error {
	for c := world; ; {
		err := c.TryAll(ctx, func(ctx context.Context) error { return fn(ctx, c) })
		corrupted, ok := errors.AsType[*mpicx.CommCorruptedError](err)
		if !ok {
			return err
		}
		for r := range c.Size() {
			if how := corrupted.Reason(ctx, r); how != "" {
				fmt.Printf("rank %d of %d has ended: %s\n", r, c.Size(), how)
			}
		}
		next, shrinkErr := c.Shrink().Get(ctx)
		if shrinkErr != nil {
			return err
		}
		c = next
	}
}
