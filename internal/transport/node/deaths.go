package node

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/mpicx/go-mpicx/internal/peers"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// patience is how long the processes of a machine wait for each other when a job begins.
const patience = time.Minute

// watch has the ends of this machine's processes told, whatever ends them. The fabric, if
// it knows of deaths, does so later, and not of all.
func (e *engine) watch() error {
	near, err := e.fabric.Neighbours(0)
	if err != nil || len(near) == 1 || len(near) > mostNeighbours {
		return err
	}
	me := slices.Index(near, e.rank)
	var name [256]byte
	if me == 0 {
		if dir, err := memoryDir(); err == nil {
			copy(name[:len(name)-1], dir)
		}
	}
	if err := e.fabric.FromFirst(name[:]); err != nil {
		return err
	}
	dir := string(bytes.TrimRight(name[:], "\x00"))
	_, err = os.Lstat(dir)
	if ok, err := e.fabric.AllNear(peers.Supported && err == nil); !ok || err != nil {
		_ = os.Remove(dir)
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if e.peers, err = peers.Join(ctx, dir, me, len(near)); err != nil {
		return fmt.Errorf("processes of this machine: %w", err)
	}
	e.peers.Watch(func(index int) { e.saw(near[index]) })
	return nil
}

// memoryDir makes a directory for this user alone, whose files are memory, where the
// system has such.
func memoryDir() (string, error) {
	dir, err := os.MkdirTemp("/dev/shm", "mpicx-*")
	if err != nil {
		dir, err = os.MkdirTemp("", "mpicx-*")
	}
	return dir, err
}

// saw takes the end of a process of this machine.
func (e *engine) saw(process int) {
	e.fabric.Lost(process) // at once: another goroutine may be in a call that waits for it
	e.lock()
	e.died(process)
	e.unlock()
}

// died takes the death of a process, which may have been told before.
func (e *engine) died(process int) {
	switch {
	case e.err != nil || e.killed[process]:
	case e.mortal:
		e.lastOf(process)
		e.lose(process)
	default:
		e.fail(&transport.LibraryError{Call: "job",
			Text: fmt.Sprintf("process %d has died: this program needs all of them; it could go on without it if it was built with -tags ulfm as well", process)})
	}
}

// findDeaths asks the fabric who has died.
func (e *engine) findDeaths() {
	dead, err := e.fabric.Failed()
	if err != nil {
		e.fail(err)
		return
	}
	for _, p := range dead {
		e.died(p)
	}
}

// bye tells the others that this process ends in order.
func (e *engine) bye() {
	if e.peers != nil {
		e.peers.Leave()
		_ = e.peers.Close()
	}
}
