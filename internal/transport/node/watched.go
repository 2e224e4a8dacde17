package node

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mpicx/go-mpicx/internal/peers"
)

// watched is a fabric that learns of the ends of this machine's processes from package peers.
type watched struct {
	Fabric
	ctx   context.Context // of the beginning
	near  []int           // the processes of this machine
	peers *peers.Peers    // nil: this machine has no other process, or their ends are not seen
	ends  atomic.Int32    // how many there are in ended; read without mu
	asked int32           // how many there were when Failed was called

	mu    sync.Mutex
	ended []int

	wake func() // has Poll called soon; nil: it is called anyhow
}

// Watched returns a fabric that sees the ends of this machine's processes at once, no matter what ends them.
// f alone sees them later, or not all. Watched tells f of them first, at any time, on a separate goroutine,
// because f may be in a call that waits for the dead. In the beginning it waits for the others until ctx
// ends.
func Watched(ctx context.Context, f Fabric) Fabric { return &watched{Fabric: f, ctx: ctx} }

func (w *watched) Start(mortal bool) (Start, error) {
	s, err := w.Fabric.Start(mortal)
	if err == nil {
		err = w.join(s.Rank)
	}
	return s, err
}

// patience is how long a process waits for others that were there a moment before.
const patience = time.Minute

// join connects this process with the others of its machine, if all of them can be connected.
func (w *watched) join(rank int) error {
	near, err := w.Neighbours(0)
	w.near = near
	if err != nil || len(near) == 1 {
		return err
	}
	me := slices.Index(near, rank)
	var name [256]byte
	if me == 0 && len(near) <= MostNeighbours {
		if dir, err := memoryDir(); err == nil {
			copy(name[:len(name)-1], dir)
		}
	}
	if err := w.FromFirst(name[:]); err != nil {
		return err
	}
	dir := string(bytes.TrimRight(name[:], "\x00"))
	p, err := peers.Listen(dir, me, len(near))
	// Once all listen, a process that does not come has ended.
	if ok, allErr := w.AllNear(err == nil); !ok || allErr != nil {
		if err == nil {
			_ = p.Close()
		}
		_ = os.Remove(dir)
		return allErr
	}
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	if err := p.Join(ctx); err != nil {
		_ = p.Close()
		return fmt.Errorf("this machine's processes are to see each other: %w", err)
	}
	w.peers = p
	w.peers.Watch(func(index int) {
		w.Lost(near[index])
		w.mu.Lock()
		w.ended = append(w.ended, near[index])
		w.mu.Unlock()
		w.ends.Add(1)
		if w.wake != nil {
			w.wake()
		}
	})
	return nil
}

// memoryDir makes a directory for this user alone. Its files are in memory, if the system has such
// directories.
func memoryDir() (string, error) {
	dir, err := os.MkdirTemp("/dev/shm", "mpicx-*")
	if err != nil {
		dir, err = os.MkdirTemp("", "mpicx-*")
	}
	return dir, err
}

func (w *watched) Poll(s Sink, times int) (happened, died bool) {
	happened, died = w.Fabric.Poll(s, times)
	return happened, died || w.ends.Load() > w.asked
}

func (w *watched) Failed() ([]int, error) {
	dead, err := w.Fabric.Failed()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = int32(len(w.ended))
	return append(dead, w.ended...), err
}

// Sees says whether a process is another process of this machine, and has not ended.
func (w *watched) Sees(process int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.peers != nil && slices.Contains(w.near, process) && !slices.Contains(w.ended, process)
}

// look checks whether one of the other processes of this machine has ended, without waiting.
func (w *watched) look() {
	if w.peers != nil {
		w.peers.Look()
	}
}

// fence kills a process of this machine that has been declared dead, if it lives. It says whether it did.
func (w *watched) fence(process int) bool {
	index := slices.Index(w.near, process)
	return w.peers != nil && index >= 0 && w.peers.Kill(index) == nil
}

// Finalize tells the others that the end of this process, which is near, is no death.
func (w *watched) Finalize(dead bool) error {
	err := w.Fabric.Finalize(dead)
	if w.peers != nil {
		w.peers.Leave()
		_ = w.peers.Close()
	}
	return err
}

// Desert shows the end of this process to the others of this machine.
func (w *watched) Desert() {
	if w.peers != nil {
		_ = w.peers.Close()
	}
	w.Fabric.Desert()
}
