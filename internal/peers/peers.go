//go:build unix

package peers

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
)

// Peers are the connections of this process with the others.
type Peers struct {
	me     int
	others []peer // by index; the one of this process is unused
	marks  *marks // nil: sockets alone show the ends of processes

	dir      string            // the directory in which the processes meet
	listener *net.UnixListener // nil: Join or Close has returned

	// mu guards the following fields, and the others.
	mu   sync.Mutex
	over bool // Close has been called
	// refused is the error with which the system has refused a connection, during Join. The name
	// of the socket then stays in dir, so the others see the end of this process.
	refused error
	told    func(index int) // reports the end of a process; nil: Watch has not been called
	changed chan struct{}   // tells Join that one of others has changed
	readers sync.WaitGroup  // the goroutines that read from connections
}

// A peer is another process. The mu of Peers guards it, unless a field says otherwise.
type peer struct {
	// When to ends, the process has ended. from is the connection that the process has made. It is
	// kept open, because its end would tell the process that this one has ended.
	to, from *net.UnixConn
	raw      syscall.RawConn // of to
	pid      int             // of the process that listened when to was made; 0: not known
	ended    atomic.Bool
}

// peek says whether a read would return, and whether it would find the end. Go's sockets do not
// block. A byte that has come says that the process leaves. It is not consumed.
func peek(fd uintptr) (there, end bool) {
	var b [1]byte
	n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK)
	there = !errors.Is(err, syscall.EAGAIN) && !errors.Is(err, syscall.EINTR)
	return there, there && n <= 0
}

// read waits for the end of a connection, or for the byte that says that the process leaves.
func (p *Peers) read(index int) {
	end := false
	_ = p.others[index].raw.Read(func(fd uintptr) (there bool) {
		there, end = peek(fd)
		return there
	})
	if end {
		p.end(index)
	}
}

// end notes the end of a process, and reports it.
func (p *Peers) end(index int) {
	var told func(int)
	p.change(func() {
		if !p.over && p.others[index].ended.CompareAndSwap(false, true) {
			told = p.told
		}
	})
	if told != nil {
		told(index)
	}
}

// Watch calls told once with the index of each process that has ended, or will end. Several
// calls may run at the same time. Told must not call Close.
func (p *Peers) Watch(told func(index int)) {
	p.mu.Lock()
	p.told = told
	var before []int
	for i := range p.others {
		if p.others[i].ended.Load() {
			before = append(before, i)
		}
	}
	p.mu.Unlock()
	for _, i := range before {
		told(i)
	}
}

// Look reports the processes whose marks say that they end. It costs a load for each.
func (p *Peers) Look() {
	for i := range p.others {
		if p.marks.ends(i) && !p.others[i].ended.Load() {
			p.end(i)
		}
	}
}

// Marks returns words that change, and wake who waits for them, when another process ends. Then
// Look finds that.
func (p *Peers) Marks() []*uint32 { return p.marks.all() }

// Kill kills another process. It returns os.ErrProcessDone if that process has ended, leaves, or
// has closed its connections, and errors.ErrUnsupported if it is unknown which process it is: in
// another PID namespace, or on a system other than Linux.
func (p *Peers) Kill(index int) error {
	p.mu.Lock()
	o := &p.others[index]
	raw, pid := o.raw, o.pid
	p.mu.Unlock()
	if raw == nil || o.ended.Load() {
		return os.ErrProcessDone
	}
	if pid <= 0 || pid == os.Getpid() {
		return fmt.Errorf("the process at the other end of a socket: %w", errors.ErrUnsupported)
	}
	process, err := os.FindProcess(pid) // a pidfd
	if err != nil {
		return err
	}
	defer func() { _ = process.Release() }()
	// If the connection is open now, the process was alive when the pidfd was opened: no other
	// process had its pid.
	var over bool
	if err := raw.Control(func(fd uintptr) { over, _ = peek(fd) }); err != nil || over {
		return os.ErrProcessDone
	}
	return os.NewSyscallError("kill", process.Kill())
}

// Leave tells the others not to report the end of this process, which will follow.
func (p *Peers) Leave() {
	p.marks.leave()
	for i := range p.others {
		if c := p.others[i].from; c != nil {
			_, _ = c.Write([]byte{0})
		}
	}
}

// Close ends all connections. For the others this process has ended, unless it has called Leave
// before. After Close has returned, nothing is reported.
func (p *Peers) Close() error {
	p.marks.leave()
	p.mu.Lock()
	p.over = true
	for i := range p.others {
		if o := &p.others[i]; o.to != nil {
			_ = o.to.Close()
		}
		if o := &p.others[i]; o.from != nil {
			_ = o.from.Close()
		}
	}
	p.mu.Unlock()
	p.readers.Wait()
	p.unlisten()
	return nil
}
