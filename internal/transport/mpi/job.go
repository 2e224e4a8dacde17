//go:build mpi

package mpi

import (
	"github.com/mpicx/go-mpicx/internal/transport"
)

// A Job is an MPI job as one of its processes sees it.
type Job struct {
	engine *engine
	world  *side
}

// Start begins to take part in the job. If it is to see processes die, MPI has to
// be one that does.
func Start(mortal bool) (*Job, error) {
	e := newEngine(mortal)
	if err := e.initialize(); err != nil {
		return nil, err
	}
	e.killed = make([]bool, e.size)
	if e.looks = polls; e.crowded {
		e.looks = 1
	}
	if err := e.shareMemory(); err != nil {
		return nil, err
	}
	e.idle.Go(e.goOn)
	return &Job{e, e.newSide(world, e.fate(world), e.rank, nil, 0)}, nil
}

// World is the communicator of all processes.
func (j *Job) World() transport.Comm { return j.world }

// Underway is how much of this process has not gone, once nothing moves: requests of
// MPI, buffers that are pinned, and packets for which there is no room.
func (j *Job) Underway() (n int) {
	e := j.engine
	for range 1000 {
		e.progress(1)
		e.mu.Lock()
		n = len(e.bodies) + len(e.offers) + e.lagging + requests()
		e.mu.Unlock()
		if n == 0 {
			break
		}
	}
	return n
}

// End waits until all processes have called it, and ends MPI. Until then this one
// takes part in what the others still do.
func (j *Job) End() error {
	e := j.engine
	e.mu.Lock()
	err := e.leaveJob()
	e.mu.Unlock()
	for all := false; err == nil && !all; {
		e.progress(polls)
		if e.crowded {
			yield()
		}
		e.mu.Lock()
		all, err = everybodyLeft()
		e.mu.Unlock()
	}
	close(e.stop)
	e.idle.Wait()
	if err != nil {
		return err
	}
	return e.finalize()
}
