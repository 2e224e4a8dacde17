package node

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mpicx/go-mpicx/internal/peers"
)

// watched is a network, with memory that the processes of this machine share. It learns of their ends from
// package peers.
type watched struct {
	Network
	ctx   context.Context // of the beginning
	near  []int           // the processes of this machine
	peers *peers.Peers    // nil: this machine has no other process, or their ends are not seen
	ends  atomic.Int32    // how many there are in ended; read without mu
	asked int32           // how many there were when Failed was called

	mu    sync.Mutex
	ended []int

	wake func() // has Poll called soon; nil: it is called anyhow
}

// Watched returns a fabric of a network in which the processes of this machine share memory, and see each
// other's ends at once, no matter what ends them. n alone sees them later, or not all. Watched tells n of them
// first, at any time, on a separate goroutine, because n may be in a call that waits for the dead. In the
// beginning it waits for the others until ctx ends.
func Watched(ctx context.Context, n Network) Fabric { return &watched{Network: n, ctx: ctx} }

// envNode is an environment variable that limits the number of processes that share memory.
const envNode = "MPICX_NODE"

func (w *watched) Start(mortal bool) (Start, error) {
	most, err := strconv.Atoi(cmp.Or(os.Getenv(envNode), "0"))
	if err != nil || most < 0 {
		return Start{}, fmt.Errorf("%s=%q, expected how many of a machine's processes share memory at most, 1 for none, 0 for all", envNode, os.Getenv(envNode))
	}
	s, err := w.Network.Start(mortal)
	if err != nil {
		return s, err
	}
	if s.Machines, err = w.Machines(); err == nil {
		err = w.join(&s, most)
	}
	if err == nil && mortal {
		err = w.AllHere()
	}
	return s, err
}

// patience is how long a process waits for others that were there a moment before.
const patience = time.Minute

// join connects this process with the others of its machine, if all of them can be connected, and has it share
// memory with at most so many of them. They meet in a directory that the first one makes.
func (w *watched) join(s *Start, most int) (err error) {
	if w.near, err = w.Neighbours(0); err != nil || len(w.near) == 1 {
		return err
	}
	me := slices.Index(w.near, s.Rank)
	var name [256]byte
	if me == 0 {
		if dir, err := memoryDir(); err == nil {
			copy(name[:len(name)-1], dir)
		}
	}
	if err := w.FromFirst(name[:]); err != nil {
		return err
	}
	dir := string(bytes.TrimRight(name[:], "\x00"))
	var p *peers.Peers
	all := len(w.near) <= MostNeighbours // they listen: a process that then does not come has ended
	if all {
		if p, err = peers.Listen(dir, me, len(w.near)); err != nil {
			p = nil
		}
		if all, err = w.AllNear(err == nil); err != nil {
			return err
		}
	}
	s.Near = w.near
	if most > 0 {
		s.Near, err = w.Neighbours(most)
	}
	if err == nil && dir != "" {
		s.Memory, err = w.share(s.Near, s.Near[0] == s.Rank, filepath.Join(dir, fmt.Sprint("memory-", s.Near[0])))
	}
	if !all { // the directory goes when all have their memory
		_, allErr := w.AllNear(true)
		err = cmp.Or(err, allErr)
	} else if err == nil {
		if err = w.watch(p); err == nil {
			return nil
		}
	}
	if p != nil {
		_ = p.Close()
	} else {
		_ = os.Remove(dir) // succeeds for the last process
	}
	return err
}

// share returns memory that neighbours share, or nil if they can't. The first of them makes its file.
func (w *watched) share(near []int, first bool, name string) (memory []byte, err error) {
	if len(near) == 1 || len(near) > MostNeighbours {
		return nil, nil
	}
	size := MemorySize(len(near))
	if first {
		var f *os.File
		if f, err = MakeFile(name, size); err == nil {
			_ = f.Close()
			defer os.Remove(name)
		}
	}
	if ok, allErr := w.AllNear(err == nil); !ok || allErr != nil {
		return nil, allErr
	}
	memory, err = MapFile(name, size)
	if ok, allErr := w.AllNear(err == nil); !ok || allErr != nil {
		return nil, allErr
	}
	return memory, nil
}

// watch waits for all peers, and has their ends noted.
func (w *watched) watch(p *peers.Peers) error {
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	if err := p.Join(ctx); err != nil {
		return fmt.Errorf("this machine's processes are to see each other: %w", err)
	}
	w.peers = p
	w.peers.Watch(func(index int) {
		w.Lost(w.near[index])
		w.mu.Lock()
		w.ended = append(w.ended, w.near[index])
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

func (w *watched) Poll(s *Sink, times int) (happened, died bool) {
	happened, died = w.Network.Poll(s, times)
	return happened, died || w.ends.Load() > w.asked
}

func (w *watched) Failed() ([]int, error) {
	dead, err := w.Network.Failed()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = int32(len(w.ended))
	return append(dead, w.ended...), err
}

// sees says whether a process is another process of this machine, and has not ended.
func (w *watched) sees(process int) bool {
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

// kill kills a process of this machine that has been declared dead, if it lives. It says whether it did.
func (w *watched) kill(process int) bool {
	index := slices.Index(w.near, process)
	return w.peers != nil && index >= 0 && w.peers.Kill(index) == nil
}

// Finalize tells the others that the end of this process, which is near, is no death.
func (w *watched) Finalize(dead bool) error {
	err := w.Network.Finalize(dead)
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
	w.Network.Desert()
}
