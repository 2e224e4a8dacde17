package main

import (
	"context"
	"errors"
	"slices"

	"github.com/mpicx/go-mpicx/examples/ulfm/lesson"
	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
)

const (
	manager = 0
	tasks   = 12
)

const ( // tags
	work = iota
	stop
)

func main() { // workers 2 and 4 die in their first task
	lesson.Main(5, func(ctx context.Context, world *mpicx.Comm, out *lesson.Lines) error {
		return farm(ctx, world, out, lesson.Faults{{Rank: 2, Step: 1}, {Rank: 4, Step: 1}})
	})
}

// farm deals out tasks. A fault's Step is the number of the task, from 1, in which a worker dies;
// for the manager, the number of answers after which it dies.
func farm(ctx context.Context, world *mpicx.Comm, out *lesson.Lines, faults lesson.Faults) error {
	world.SetErrhandler(mpicx.ErrorsReturn)
	if world.Rank() == manager {
		return manage(ctx, world, out, faults)
	}
	task := []int{0}
	for n := 1; ; n++ {
		s, err := mpicx.Recv(world, task, manager, mpicx.AnyTag).Get(ctx)
		if lesson.IsDeath(err) {
			out.Say(world, "the manager is dead")
			return nil
		}
		if err != nil || s.Tag == stop {
			return err
		}
		faults.Here(world, n, "")
		// If the manager has died, the next receive reports it.
		_ = mpicx.Send(world, []int{task[0] * task[0]}, manager, work).Wait(ctx)
	}
}

func manage(ctx context.Context, world *mpicx.Comm, out *lesson.Lines, faults lesson.Faults) error {
	var todo, idle, lost []int
	for task := range tasks {
		todo = append(todo, task)
	}
	for w := manager + 1; w < world.Size(); w++ {
		idle = append(idle, w)
	}
	doing := make(map[int]int) // the task of each worker

	answer, sum, answers, known := []int{0}, 0, 0, 0
	var next *future.Future[mpicx.Status] // the receive from AnySource
	for answers < tasks {
		for len(todo) > 0 && len(idle) > 0 {
			w, task := idle[0], todo[0]
			idle, todo, doing[w] = idle[1:], todo[1:], task
			// If the worker has died, the receive below reports it.
			_ = mpicx.Send(world, []int{task}, w, work).Wait(ctx)
		}
		if len(doing) == 0 {
			out.Say(world, "no worker is left for tasks %v", todo)
			return nil
		}
		if next == nil {
			next = mpicx.Recv(world, answer, mpicx.AnySource, work)
		}
		s, err := next.Get(ctx)
		switch {
		case err == nil:
			next = nil
			if _, ok := doing[s.Source]; ok { // otherwise the task was given to another worker meanwhile
				delete(doing, s.Source)
				idle = append(idle, s.Source)
				answers, sum = answers+1, sum+answer[0]
				faults.Here(world, answers, "")
			}
		case errors.Is(err, mpicx.ErrProcFailedPending):
			failed := world.Failed()
			for _, w := range failed[known:] {
				if task, ok := doing[w]; ok {
					todo, lost = append(todo, task), append(lost, task)
					delete(doing, w)
				}
				idle = slices.DeleteFunc(idle, func(i int) bool { return i == w })
			}
			known = world.AckFailed(len(failed)) // next then continues
		default:
			return err
		}
	}
	for _, w := range idle {
		_ = mpicx.Send(world, []int{}, w, stop).Wait(ctx)
	}
	slices.Sort(lost)
	out.Say(world, "the sum of all squares is %d; %d workers died, with tasks %v in hand", sum, known, lost)
	return nil
}
