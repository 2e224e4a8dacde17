package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/checkpoint"
	"github.com/mpicx/go-mpicx/mpicx/inject"
)

const checkpointBytes = 64 << 20

func checkpointRows() []row {
	return []row{
		{what: "Save, 64 MiB a rank: the program is held up", against: "copy of 64 MiB", reach: 1.2, measure: save},
		{what: "Restore of one lost rank from a partner, 64 MiB", against: "Send and Recv of 64 MiB", reach: 1.3, measure: restoreLost},
	}
}

// save compares the time that Save blocks two ranks with the time in which both copy the same bytes
// at once.
func save(c config) result {
	n := c.times(21) + 2
	times := [2][]span{make([]span, n), make([]span, n)}
	must(mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		st, err := checkpoint.Open(ctx, world)
		if err != nil {
			return err
		}
		x, to := make([]byte, checkpointBytes), make([]byte, checkpointBytes)
		fill(x)
		fill(to)
		st.Protect("x", &x)
		for i := range n {
			for j := range times {
				if err := world.Barrier().Wait(ctx); err != nil {
					return err
				}
				begin := time.Now()
				if j == 0 {
					f := st.Save(ctx, i)
					times[j][i].add(begin, time.Now())
					if err := f.Wait(ctx); err != nil {
						return err
					}
				} else {
					copy(to, x)
					times[j][i].add(begin, time.Now())
				}
			}
		}
		return st.Close(ctx)
	}, mpicx.WithRanks(2)))
	return result{durations(times[0][2:]), durations(times[1][2:]), "two ranks at a time, each has saved twice before"}
}

func durations(spans []span) (s samples) {
	for i := range spans {
		s = append(s, float64(spans[i].length()))
	}
	return s
}

// fill touches all pages.
func fill(b []byte) {
	for i := range b {
		b[i] = byte(i)
	}
}

// restoreLost compares the time from Replace to Restore, at the spare and the other rank, with a
// message of as many bytes.
func restoreLost(c config) result {
	s := inTurn(c.times(9), restoring, sending)
	return result{s[0], s[1], "with Open, of 2 ranks, from the first in to the last out"}
}

func restoring() time.Duration {
	var s span
	must(mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		comm, st, err := restoreOnce(ctx, world, s.add)
		if err != nil {
			return err
		}
		return errors.Join(st.Close(ctx), comm.Barrier().Wait(ctx))
	}, mpicx.WithRanks(2), mpicx.WithSpares(1), backend("ulfm")))
	return s.length()
}

// restoreOnce has rank 1 of 2 die after a Save, and its partner and a spare restore the version. Took
// gets the times before Open or Rejoin and after Restore. All variables are in memory that was
// written before, as the buffers of sending are.
func restoreOnce(ctx context.Context, world *mpicx.Comm, took func(begun, ended time.Time)) (*mpicx.Comm, *checkpoint.Store, error) {
	x := make([]byte, checkpointBytes)
	fill(x)
	comm := world
	var st *checkpoint.Store
	var err error
	if world.Incarnation() == 0 {
		if st, err = checkpoint.Open(ctx, world); err != nil {
			return nil, nil, err
		}
		st.Protect("x", &x)
		if err := st.Save(ctx, 0).Wait(ctx); err != nil {
			return nil, nil, err
		}
		_ = world.Barrier().Wait(ctx)
		if world.Rank() == 1 {
			inject.Die(world)
		}
		_ = world.Barrier().Wait(ctx)
		if comm, err = world.Replace().Get(ctx); err != nil {
			return nil, nil, err
		}
	}
	if err := comm.Barrier().Wait(ctx); err != nil {
		return nil, nil, err
	}
	begun := time.Now()
	if st == nil {
		if st, err = checkpoint.Open(ctx, comm); err != nil {
			return nil, nil, err
		}
		st.Protect("x", &x)
	} else if st, err = st.Rejoin(ctx, comm); err != nil {
		return nil, nil, err
	}
	if _, err := st.Restore(ctx); err != nil {
		return nil, nil, err
	}
	took(begun, time.Now())
	return comm, st, nil
}

// jobRestore is restoring in a job of 3 processes.
func jobRestore(ctx context.Context, world *mpicx.Comm) error {
	times, most := []int64{0, 0}, []int64{0, 0}
	comm, st, err := restoreOnce(ctx, world, func(begun, ended time.Time) {
		times[0], times[1] = -begun.UnixNano(), ended.UnixNano()
	})
	if err != nil {
		return err
	}
	mpicx.Allreduce(comm, times, most, mpicx.Max).MustWait(ctx)
	if comm.Rank() == 0 {
		fmt.Fprintln(out, most[0]+most[1])
	}
	return st.Close(ctx)
}

func sending() time.Duration {
	var s span
	must(mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		x := make([]byte, checkpointBytes)
		fill(x)
		if err := world.Barrier().Wait(ctx); err != nil {
			return err
		}
		begin := time.Now()
		if world.Rank() == 0 {
			mpicx.Send(world, x, 1, 0).MustWait(ctx)
		} else {
			mpicx.Recv(world, x, 0, 0).MustWait(ctx)
		}
		s.add(begin, time.Now())
		return world.Barrier().Wait(ctx)
	}, mpicx.WithRanks(2), backend("ulfm")))
	return s.length()
}
