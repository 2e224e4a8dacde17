//go:build unix

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
)

// The environment variables that describe the job to a process.
const (
	envDir    = "MPICX_KILLS_DIR"
	envEnds   = "MPICX_KILLS_ENDS"
	envRounds = "MPICX_KILLS_ROUNDS"
	envReturn = "MPICX_KILLS_RETURN" // ErrorsReturn
	envSpares = "MPICX_KILLS_SPARES"
)

// rank returns this process's rank, as the launcher set it.
func rank() int {
	for _, name := range []string{"OMPI_COMM_WORLD_RANK", "MPICXRUN_RANK", "PMI_RANK"} {
		if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
			return n
		}
	}
	return -1
}

// grace is how much later than its deadline Initialize may return.
const grace = 3 * time.Second

// stopwatch starts a clock that stands still while this process gets no core. It returns a function
// that stops and reads the clock.
func stopwatch() (read func() time.Duration) {
	const tick = 50 * time.Millisecond
	t := time.NewTicker(tick) // drops ticks that are not received in time
	stop, ticks := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		for {
			select {
			case <-t.C:
				n++
			case <-stop:
				ticks <- n
				return
			}
		}
	}()
	return func() time.Duration {
		t.Stop()
		close(stop)
		return time.Duration(<-ticks) * tick
	}
}

const noteTime = "15:04:05.000000"

var notes struct {
	sync.Mutex
	*os.File
}

// note writes a line to this process's file.
func note(format string, args ...any) {
	notes.Lock()
	defer notes.Unlock()
	_, _ = fmt.Fprintf(notes.File, time.Now().Format(noteTime)+" "+format+"\n", args...)
}

// live is the life of a process of a job.
func live(dir string) error {
	var err error
	if notes.File, err = os.Create(fmt.Sprintf("%s/%d", dir, rank())); err != nil {
		return err
	}
	note("begins")
	var l life
	for _, s := range strings.Fields(os.Getenv(envEnds)) {
		e, err := parseEnd(s)
		if err != nil {
			return err
		}
		if e.rank == rank() {
			l.end = e
		}
	}
	l.rounds, _ = strconv.Atoi(os.Getenv(envRounds))
	l.returns = os.Getenv(envReturn) != ""
	spares, _ := strconv.Atoi(os.Getenv(envSpares))
	patience := 30 * time.Second
	if l.end.place == "start" || strings.Contains(os.Getenv(envEnds), ":start:") {
		patience = 5 * time.Second
	}
	l.at("start", 0)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	read := stopwatch()
	instance, err := mpicx.Initialize(ctx, mpicx.WithSpares(spares))
	took := read()
	if err != nil {
		note("not begun after %v: %v", took, err)
		if took > patience+grace {
			note("late: Initialize returned after %v, its deadline was after %v", took, patience)
		}
		return nil
	}
	if l.comm = instance.World(); l.comm == nil {
		return finalize(instance)
	}
	if l.comm.Incarnation() > 0 {
		note("is rank %d, incarnation %d", l.comm.Rank(), l.comm.Incarnation())
	}
	attempt := l.propagating
	if l.returns {
		attempt = l.returning
	}
	for done := false; !done; {
		if done, err = attempt(context.Background()); err != nil {
			note("failed %v", err)
			return err
		}
	}
	note("agreed %v", l.members)
	l.at("finalize", 0)
	return finalize(instance)
}

func finalize(instance *mpicx.Instance) error {
	err := instance.Finalize(context.Background())
	if _, died := errors.AsType[*mpicx.ProcFailedError](err); died && instance.World() == nil {
		note("left over: %v", err) // a spare, when all that worked have died
		return nil
	}
	if err != nil {
		note("failed Finalize: %v", err)
		return err
	}
	note("survived")
	return nil
}

// life is one process's knowledge of its job.
type life struct {
	end     end
	rounds  int
	returns bool // ErrorsReturn
	comm    *mpicx.Comm
	members []int // of comm, as ranks of the world; nil: not known
	done    int   // rounds
}

func (l *life) at(place string, round int) {
	if l.end.place == place && l.end.round <= round || l.end.place == place && place != "work" {
		e := l.end
		l.end.place = "" // once
		e.happen()
	}
}

// propagating works under ErrorsPropagate, and reports whether all is done. If not, comm becomes
// the survivors' communicator.
func (l *life) propagating(ctx context.Context) (done bool, err error) {
	err = l.work(ctx)
	if e, ok := errors.AsType[*mpicx.CommCorruptedError](err); ok && !e.Of(l.comm) {
		// The corruption is the duplicate's. Some ranks may have closed it, and are not told.
		if err := l.comm.Revoke(ctx); err != nil {
			return false, fmt.Errorf("revoke: %w", err)
		}
	}
	if err == nil {
		l.at("agree", 0)
		last := l.comm.Agree(1)
		if err = last.Wait(ctx); err != nil && last.Wait(ctx) == nil {
			err = nil // the agreement ended before the error came (P7)
		}
	}
	if err == nil {
		return true, nil
	}
	return false, l.repair(ctx, err)
}

// returning works under ErrorsReturn, as propagating does. A rank that meets a death tells the
// others by a revoke, and all agree on how to continue.
func (l *life) returning(ctx context.Context) (done bool, err error) {
	l.comm.SetErrhandler(mpicx.ErrorsReturn)
	ok := 1
	if err = l.work(ctx); err != nil {
		ok = 0
		if err := l.comm.Revoke(ctx); err != nil {
			return false, fmt.Errorf("revoke: %w", err)
		}
	}
	l.at("agree", 0)
	flag, agreed := l.comm.Agree(ok).Get(ctx)
	if agreed == nil && flag == 1 {
		return true, nil
	}
	return false, l.repair(ctx, cmp.Or(agreed, err, mpicx.ErrRevoked))
}

// repair makes comm the survivors' communicator, with spares in place of the dead while there are
// any.
func (l *life) repair(ctx context.Context, cause error) error {
	note("meets %v", cause)
	l.at("recover", 0)
	for {
		_, died := errors.AsType[*mpicx.ProcFailedError](cause)
		_, corrupted := errors.AsType[*mpicx.CommCorruptedError](cause)
		if !died && !corrupted && !errors.Is(cause, mpicx.ErrRevoked) && !errors.Is(cause, mpicx.ErrProcFailedPending) {
			return cause
		}
		c, err := l.comm.Replace().Get(ctx)
		if _, short := errors.AsType[*mpicx.SpareError](err); short {
			c, err = l.comm.Shrink().Get(ctx)
		}
		if err == nil {
			l.comm, l.members = c, nil
			return nil
		}
		cause = err // it came meanwhile; the loop decides what it is
	}
}

// work does the remaining rounds.
func (l *life) work(ctx context.Context) error {
	if l.members == nil {
		type of struct{ Rank, Done int }
		all, err := mpicx.AllgatherValue(l.comm, of{rank(), l.done}).Get(ctx)
		if err != nil {
			return err
		}
		for _, m := range all {
			l.members = append(l.members, m.Rank)
			l.done = max(l.done, m.Done)
		}
		if unique := slices.Compact(slices.Sorted(slices.Values(l.members))); len(unique) != l.comm.Size() {
			note("wrong members %v", l.members)
		}
	}
	for ; l.done < l.rounds; l.done++ {
		l.at("work", l.done)
		if err := l.round(ctx, l.done); err != nil {
			return err
		}
	}
	return nil
}

// round exchanges messages in one of seven ways and checks their values.
func (l *life) round(ctx context.Context, round int) error {
	c, n, me := l.comm, l.comm.Size(), l.comm.Rank()
	next, last := (me+1)%n, (me+n-1)%n
	expect := func(err error, got, want int) error {
		if err == nil && got != want {
			note("wrong value in round %d: %d, expected %d", round, got, want)
		}
		return err
	}
	switch round % 7 {
	case 0:
		x := []int{round + me}
		err := mpicx.Allreduce(c, x, x, mpicx.Sum).Wait(ctx)
		return expect(err, x[0], n*round+n*(n-1)/2)
	case 1, 2: // short, long
		size := []int{1, 30_000}[round%7-1]
		out, in := make([]int, size), make([]int, size)
		out[size-1] = 100*round + me
		err := future.WaitAll(ctx, mpicx.Recv(c, in, last, round), mpicx.Send(c, out, next, round))
		return expect(err, in[size-1], 100*round+last)
	case 3:
		v, err := mpicx.BcastValue(c, 100*round+me, round%n).Get(ctx)
		return expect(err, v, 100*round+round%n)
	case 4:
		all, err := mpicx.AllgatherValue(c, 100*round+me).Get(ctx)
		for r, v := range all {
			_ = expect(err, v, 100*round+r)
		}
		return err
	case 5: // to rank 0 from any rank
		if me > 0 {
			return mpicx.Send(c, []int{me}, 0, round).Wait(ctx)
		}
		sum := 0
		for range n - 1 {
			in := []int{0}
			if err := mpicx.Recv(c, in, mpicx.AnySource, round).Wait(ctx); err != nil {
				return err
			}
			sum += in[0]
		}
		return expect(nil, sum, n*(n-1)/2)
	default:
		d, err := c.Dup().Get(ctx)
		if err != nil {
			return err
		}
		if err := d.Barrier().Wait(ctx); err != nil {
			return err
		}
		return d.Close(ctx)
	}
}
