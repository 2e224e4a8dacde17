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

// watched is a Network in which the processes of this machine also share memory. It learns from
// package peers when one of them ends. The ends come on goroutines of package peers, at any time.
// So they have a mutex of their own: the goroutine that holds the engine's mu may be in a call of
// the Network that returns only when Lost has told the Network of the death.
type watched struct {
	Network
	ctx   context.Context // Start waits for the other processes until it ends
	near  []int           // the processes of this machine, including this one
	peers *peers.Peers    // nil: no other process of this machine is watched
	ends  atomic.Int32    // the length of ended; read without mu
	asked int32           // the length of ended when Failed was called last; protected by engine.mu

	mu    sync.Mutex
	ended []int // the processes of this machine that have ended, in order; protected by mu

	wake func() // of Start
}

// Watched returns a Fabric made of n, in which the processes of this machine share memory, and see
// at once when one of them ends, no matter why. n alone would see this later, or not always.
//
// When a process has ended, Watched calls n.Lost before anything else. It does so at any time, on a
// separate goroutine, because n may be in a call that waits for the dead process. Start waits for
// the other processes of this machine until ctx ends.
func Watched(ctx context.Context, n Network) Fabric { return &watched{Network: n, ctx: ctx} }

// envNode is an environment variable that limits the number of processes that share memory.
const envNode = "MPICX_NODE"

func (w *watched) Start(mortal bool, wake func()) (Start, error) {
	w.wake = wake
	most, err := strconv.Atoi(cmp.Or(os.Getenv(envNode), "0"))
	if err != nil || most < 0 {
		return Start{}, fmt.Errorf("%s=%q, expected how many of a machine's processes share memory at most, 1 for none, 0 for all", envNode, os.Getenv(envNode))
	}
	s, err := w.Network.Start(mortal, wake)
	if err != nil {
		return s, err
	}
	if s.Machines, err = w.Machines(); err == nil {
		err = w.join(&s, most)
	}
	// Until here all calls need all processes. AllHere ends that: no process begins its program, in
	// which it may die, while others still meet.
	if err == nil && mortal {
		err = w.AllHere()
	}
	return s, err
}

// patience is how long a process waits for other processes of its machine, which were there a
// moment before.
const patience = time.Minute

// join connects this process with the others of its machine, if all of them can be connected. It
// also makes them share memory, in groups of at most most processes, if most is not 0. They meet in
// a directory that the first process makes. Its calls of the Network are collective. So a process
// for which something fails must not return before the others do: it makes the same calls, and
// AllNear tells the others. Then all do without.
func (w *watched) join(s *Start, most int) (err error) {
	if w.near, err = w.Neighbours(0); err != nil || len(w.near) == 1 {
		return err
	}
	me := slices.Index(w.near, s.Rank)
	var name [256]byte
	// Without a directory the name stays empty. The others see that, and no process shares memory.
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
	all := len(w.near) <= MostNeighbours // of which all listen: one that then does not connect has ended
	if all {
		if p, err = peers.Listen(dir, me, len(w.near)); err != nil {
			p = nil
		}
		if all, err = w.AllNear(err == nil); err != nil {
			if p != nil {
				_ = p.Close()
			}
			return err
		}
	}
	// Otherwise a death that the peers do not see must be found by polls of the Network.
	s.Wakes = s.Wakes && all
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
		if err = w.awaitPeers(p); err == nil {
			s.Marks = p.Marks()
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

// share returns the memory that the neighbours share, or nil if they can't. The first of them makes
// the file with this name.
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
	// Nobody opens the file before it is complete.
	if ok, allErr := w.AllNear(err == nil); !ok || allErr != nil {
		return nil, allErr
	}
	// Either all use the memory or none does: a process without it would never look into its rings.
	memory, err = MapFile(name, size)
	if ok, allErr := w.AllNear(err == nil); !ok || allErr != nil {
		return nil, allErr
	}
	// All have mapped it, so the first process may remove the name. The memory lasts as long as the
	// processes do, and nothing is left when they are killed.
	return memory, nil
}

// awaitPeers waits until all peers have connected. From then on their ends are noted in ended.
func (w *watched) awaitPeers(p *peers.Peers) error {
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	if err := p.Join(ctx); err != nil {
		return fmt.Errorf("this machine's processes are to see each other: %w", err)
	}
	w.peers = p
	w.peers.Watch(func(index int) {
		w.Lost(w.near[index])
		// The order matters: ends is raised when ended has the process, so Failed, which Poll
		// causes, finds it there. wake is last: the goroutine that it wakes finds ends raised.
		w.mu.Lock()
		w.ended = append(w.ended, w.near[index])
		w.mu.Unlock()
		w.ends.Add(1)
		w.wake()
	})
	return nil
}

// memoryDir makes a directory that only this user can open. Its files are in memory, if the system
// has a directory for such files.
func memoryDir() (string, error) {
	dir, err := os.MkdirTemp("/dev/shm", "mpicx-*")
	if err != nil {
		dir, err = os.MkdirTemp("", "mpicx-*")
	}
	return dir, err
}

func (w *watched) Poll(s *Sink, times int) (happened, died bool) {
	// It costs a load for each peer. A mark is there before the system has closed the sockets of a
	// large process.
	if w.peers != nil {
		w.peers.Look()
	}
	happened, died = w.Network.Poll(s, times)
	return happened, died || w.ends.Load() > w.asked
}

// Failed returns all deaths each time. The engine ignores those that it has noted.
func (w *watched) Failed() ([]int, error) {
	dead, err := w.Network.Failed()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = int32(len(w.ended))
	return append(dead, w.ended...), err
}

// sees says whether this process would see the end of another process, and has not seen it: the
// other is of this machine, watched, and has not ended. Such a process can vouch for the other: see
// heart.
func (w *watched) sees(process int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.peers != nil && slices.Contains(w.near, process) && !slices.Contains(w.ended, process)
}

// kill kills a process of this machine that has been declared dead. It returns false if the process
// has ended already, or can't be killed.
func (w *watched) kill(process int) bool {
	index := slices.Index(w.near, process)
	return w.peers != nil && index >= 0 && w.peers.Kill(index) == nil
}

// Finalize ends this process's part in the job. It also tells the other processes of this machine
// that the end of this process, which comes soon, is no death.
func (w *watched) Finalize(dead bool) error {
	err := w.Network.Finalize(dead)
	// Only now: if this process dies before, the others have to see a death.
	if w.peers != nil {
		w.peers.Leave()
		_ = w.peers.Close()
	}
	return err
}

// Desert ends this process's part in the job as if the process had ended: the other processes of
// this machine see it as dead. Without Leave, the closed connections are a death to them.
func (w *watched) Desert() {
	if w.peers != nil {
		_ = w.peers.Close()
	}
	w.Network.Desert()
}
