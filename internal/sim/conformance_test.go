package sim

import (
	"bytes"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mpicx/go-mpicx/internal/buildtags"
	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/transporttest"
)

// TestConformance runs the suite of all transports, whose ranks are goroutines. So here, and only
// here, the world has a lock, and a goroutine that drives it while they wait.
func TestConformance(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for n, model := range []Model{2: cluster, 3: wild} {
		if model == nil || buildtags.Race && n > 2 {
			continue
		}
		t.Run(fmt.Sprintf("%d ranks, %v", n, model), func(t *testing.T) {
			transporttest.Run(t, func(t *testing.T, body func(*testing.T, transport.Comm)) {
				drive(t, New(Config{Ranks: n, Model: model}), n, body)
			})
		})
	}
}

func drive(t *testing.T, w *World, n int, body func(*testing.T, transport.Comm)) {
	mu := new(reentrant)
	var ranks sync.WaitGroup
	var running atomic.Int32
	running.Store(int32(n))
	for r := range n {
		ranks.Go(func() {
			defer running.Add(-1)
			body(t, locked{w.Comm(r), mu})
		})
	}
	for running.Load() > 0 {
		unlock := mu.lock()
		for range 20 {
			w.Step()
		}
		unlock()
		time.Sleep(time.Microsecond) // lets the ranks take the lock
	}
	ranks.Wait()
}

// reentrant is a mutex that a goroutine may lock again.
type reentrant struct {
	mu     sync.Mutex
	holder atomic.Value // string: the goroutine's number
}

func (l *reentrant) lock() (unlock func()) {
	var stack [32]byte
	number, _, _ := bytes.Cut(stack[:runtime.Stack(stack[:], false)], []byte(" ["))
	me := string(number)
	if l.holder.Load() == me {
		return func() {}
	}
	l.mu.Lock()
	l.holder.Store(me)
	return func() {
		l.holder.Store("")
		l.mu.Unlock()
	}
}

// locked is a Comm for goroutines.
type locked struct {
	transport.Comm
	mu *reentrant
}

func (l locked) Epoch() transport.Epoch { defer l.mu.lock()(); return l.Comm.Epoch() }
func (l locked) Advance(generation int, cause error) {
	defer l.mu.lock()()
	l.Comm.Advance(generation, cause)
}
func (l locked) Quiesce(then func()) { defer l.mu.lock()(); l.Comm.Quiesce(then) }
func (l locked) TrySend(dest, tag int, epoch transport.Epoch, w signature.Word, buf []byte) bool {
	defer l.mu.lock()()
	return l.Comm.TrySend(dest, tag, epoch, w, buf)
}
func (l locked) Isend(r *transport.Request)        { defer l.mu.lock()(); l.Comm.Isend(r) }
func (l locked) Poke()                             { defer l.mu.lock()(); l.Comm.Poke() }
func (l locked) Listen(to transport.Listener)      { defer l.mu.lock()(); l.Comm.Listen(to) }
func (l locked) Irecv(r *transport.Request)        { defer l.mu.lock()(); l.Comm.Irecv(r) }
func (l locked) TryRecv(r *transport.Request) bool { defer l.mu.lock()(); return l.Comm.TryRecv(r) }
func (l locked) Probe(r *transport.Request)        { defer l.mu.lock()(); l.Comm.Probe(r) }
func (l locked) Mprobe(r *transport.Request)       { defer l.mu.lock()(); l.Comm.Mprobe(r) }
func (l locked) Mrecv(r *transport.Request)        { defer l.mu.lock()(); l.Comm.Mrecv(r) }
func (l locked) Cancel(r *transport.Request) bool  { defer l.mu.lock()(); return l.Comm.Cancel(r) }
func (l locked) Sub(name transport.Name, members []int) (transport.Comm, error) {
	defer l.mu.lock()()
	c, err := l.Comm.Sub(name, members)
	return locked{c, l.mu}, err
}
func (l locked) Close() error       { defer l.mu.lock()(); return l.Comm.Close() }
func (l locked) Revoke(cause error) { defer l.mu.lock()(); l.Comm.Revoke(cause) }
func (l locked) EachPending(visit func(*transport.Request)) {
	defer l.mu.lock()()
	l.Comm.EachPending(visit)
}
