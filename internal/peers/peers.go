//go:build unix

package peers

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Supported says whether this system has what it takes.
const Supported = true

// Peers is this process's connections with the others.
type Peers struct {
	me    int
	peers []peer // by index; that of this process is unused
	look  atomic.Uint32

	sockets  sockets
	listener *net.UnixListener // nil: Join has returned, or Close

	mu      sync.Mutex
	over    bool            // Close has been called
	told    func(index int) // nil: Watch has not been called
	changed chan struct{}   // one of peers has, while joining
	readers sync.WaitGroup
}

// A peer is another process. The mu of Peers guards it, but for what says otherwise.
type peer struct {
	to, from *net.UnixConn // to's end is the process's; from is held for the other side
	raw      syscall.RawConn
	peek     func(fd uintptr) // for raw; sets sees
	sees     bool             // of Look, which one goroutine at a time calls
	ended    atomic.Bool
}

// Join has process me of n connected with the others, as Listen and then Join do.
func Join(ctx context.Context, dir string, me, n int) (*Peers, error) {
	p, err := Listen(dir, me, n)
	if err != nil {
		return nil, err
	}
	if err := p.Join(ctx); err != nil {
		_ = p.Close()
		return nil, err
	}
	return p, nil
}

// Listen begins what process me of n needs to be connected with the others, which call it
// with the same directory: one that is this user's alone, and that is empty before. From now
// on they see the end of this process. Join or Close has to follow.
func Listen(dir string, me, n int) (*Peers, error) {
	if me < 0 || me >= n {
		return nil, fmt.Errorf("process %d of %d, expected one of 0 to %d", me, n, n-1)
	}
	if err := private(dir); err != nil {
		return nil, err
	}
	p := &Peers{me: me, peers: make([]peer, n), changed: make(chan struct{}, 1)}
	var err error
	if p.sockets, err = socketsIn(dir, n); err != nil {
		return nil, err
	}
	if p.listener, err = p.sockets.listen(me); err == nil {
		if err = os.Rename(p.sockets.early(me), p.sockets.name(me)); err != nil {
			_ = p.listener.Close()
		}
	}
	if err != nil {
		p.sockets.close()
		return nil, err
	}
	return p, nil
}

// Ended has those that join in dir see that a process of n has ended. It may have ended
// before it had called Listen, or in the middle of it.
func Ended(dir string, index, n int) error {
	s, err := socketsIn(dir, n)
	if err != nil {
		return err
	}
	defer s.close()
	_ = os.Remove(s.early(index))
	l, err := s.listen(index)
	if err != nil {
		return err
	}
	_ = l.Close()
	defer os.Remove(s.early(index))
	if err := os.Link(s.early(index), s.name(index)); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// private says why a directory is not this user's alone.
func private(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if s, ok := info.Sys().(*syscall.Stat_t); !info.IsDir() || info.Mode().Perm()&0o077 != 0 || ok && int(s.Uid) != os.Geteuid() {
		return fmt.Errorf("%s (%v), expected a directory of this user alone, mode 0700", dir, info.Mode())
	}
	return nil
}

// sockets are those of the processes that join in a directory. Who finds one under its name,
// and is refused, knows that its process has ended.
type sockets struct {
	dir   string
	place string // another name of dir, which is short enough, in a directory for it; or dir
}

// longest is how long the path of a socket may be, everywhere.
const longest = 100

func socketsIn(dir string, n int) (s sockets, err error) {
	s = sockets{dir, dir}
	if len(s.early(n)) <= longest {
		return s, nil
	}
	short, err := os.MkdirTemp("/tmp", "mpicx-")
	if err != nil {
		return s, err
	}
	s.place = filepath.Join(short, "d")
	if err := os.Symlink(dir, s.place); err != nil {
		_ = os.RemoveAll(short)
		return s, err
	}
	return s, nil
}

func (s *sockets) close() {
	if s.place != s.dir {
		_ = os.RemoveAll(filepath.Dir(s.place))
	}
}

// name is that of the socket of a process; early, before it is served.
func (s *sockets) name(index int) string  { return filepath.Join(s.place, strconv.Itoa(index)) }
func (s *sockets) early(index int) string { return s.name(index) + "-" }

func (s *sockets) listen(index int) (*net.UnixListener, error) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: s.early(index), Net: "unix"})
	if err == nil {
		l.SetUnlinkOnClose(false)
	}
	return l, err
}

// unlisten ends what Listen has begun.
func (p *Peers) unlisten() {
	if p.listener != nil {
		_ = p.listener.Close()
		_ = os.Remove(p.sockets.name(p.me))
		p.clear()
		p.sockets.close()
		p.listener = nil
	}
}

// Join connects this process with the others. The directory is gone when all have joined, or
// closed. Join returns once all others have come, or have ended meanwhile; or, if ctx ends
// before, an error that says who has not come.
func (p *Peers) Join(ctx context.Context) error {
	defer p.unlisten()
	var all sync.WaitGroup
	defer all.Wait()
	defer p.listener.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	all.Go(func() { p.accept(ctx, p.listener) })
	for i := range p.peers {
		if i != p.me {
			all.Go(func() { p.connect(ctx, i, p.sockets.name(i)) })
		}
	}
	for {
		missing := p.missing()
		if len(missing) == 0 {
			return nil
		}
		select {
		case <-p.changed:
		case <-ctx.Done():
			return fmt.Errorf("of %d processes %v have not come: %w", len(p.peers), missing, context.Cause(ctx))
		}
	}
}

// clear removes a directory in which nobody looks for anybody any more: who has done so has
// removed its name, so that those of processes that have ended are left.
func (p *Peers) clear() {
	names, err := os.ReadDir(p.sockets.dir)
	for _, n := range names {
		if i, e := strconv.Atoi(n.Name()); e != nil || i < 0 || i >= len(p.peers) || !p.peers[i].ended.Load() {
			return
		}
	}
	if err == nil {
		_ = os.RemoveAll(p.sockets.dir)
	}
}

// missing are those that have not come, nor ended.
func (p *Peers) missing() (missing []int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.peers {
		if o := &p.peers[i]; i != p.me && !o.ended.Load() && (o.to == nil || o.from == nil) {
			missing = append(missing, i)
		}
	}
	return missing
}

// change changes the state of a peer.
func (p *Peers) change(how func()) {
	p.mu.Lock()
	how()
	p.mu.Unlock()
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// accept takes what others connect, until l is closed. Each begins with its index.
func (p *Peers) accept(ctx context.Context, l *net.UnixListener) {
	var all sync.WaitGroup
	defer all.Wait()
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			return
		}
		all.Go(func() {
			stop := context.AfterFunc(ctx, func() { _ = c.SetReadDeadline(time.Unix(1, 0)) })
			var hello [4]byte
			_, err := io.ReadFull(c, hello[:])
			index := int(binary.LittleEndian.Uint32(hello[:]))
			ok := stop() && err == nil && index < len(p.peers) && index != p.me && sameUser(c)
			if ok {
				p.change(func() {
					if ok = p.peers[index].from == nil && !p.over; ok {
						p.peers[index].from = c
					}
				})
			}
			if !ok {
				_ = c.Close()
			}
		})
	}
}

// connect connects with another process, once it is there.
func (p *Peers) connect(ctx context.Context, index int, name string) {
	var d net.Dialer
	o := &p.peers[index]
	most := max(10*time.Millisecond, time.Duration(len(p.peers))*time.Millisecond/2) // or many would do nothing else
	for wait := 50 * time.Microsecond; ctx.Err() == nil; wait = min(2*wait, most) {
		c, err := d.DialContext(ctx, "unix", name)
		switch {
		case errors.Is(err, syscall.ECONNREFUSED):
			p.end(index)
			return
		case err == nil:
			to := c.(*net.UnixConn)
			if !sameUser(to) {
				_ = to.Close()
				break
			}
			var hello [4]byte
			binary.LittleEndian.PutUint32(hello[:], uint32(p.me))
			_, _ = to.Write(hello[:]) // if it has ended, the reader sees it
			p.change(func() { o.begin(to) })
			p.readers.Go(func() { p.read(index) })
			return
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
}

// begin sets the connection to the process.
func (o *peer) begin(to *net.UnixConn) {
	o.to = to
	o.raw, _ = to.SyscallConn()
	o.peek = func(fd uintptr) { _, o.sees = peek(fd) }
}

// peek says whether something is there, and whether that is the end. Go has it not wait.
// What has come stays there: it says that the process leaves.
func peek(fd uintptr) (there, end bool) {
	var b [1]byte
	n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK)
	there = !errors.Is(err, syscall.EAGAIN) && !errors.Is(err, syscall.EINTR)
	return there, there && n <= 0
}

// read waits for the end of a connection, or for what comes before if the process leaves.
func (p *Peers) read(index int) {
	end := false
	_ = p.peers[index].raw.Read(func(fd uintptr) (there bool) {
		there, end = peek(fd)
		return there
	})
	if end {
		p.end(index)
	}
}

// end notes the end of a process, and tells it.
func (p *Peers) end(index int) {
	var told func(int)
	p.change(func() {
		if !p.over && p.peers[index].ended.CompareAndSwap(false, true) {
			told = p.told
		}
	})
	if told != nil {
		told(index)
	}
}

// Watch has told called with the index of each process that has ended, or will, once.
// Several calls may run at the same time. Told must not call Close.
func (p *Peers) Watch(told func(index int)) {
	p.mu.Lock()
	p.told = told
	var before []int
	for i := range p.peers {
		if p.peers[i].ended.Load() {
			before = append(before, i)
		}
	}
	p.mu.Unlock()
	for _, i := range before {
		told(i)
	}
}

// Look looks whether one process has ended, each time another one, without waiting. A
// goroutine that does not give its thread away, so that Go does not hear from the system
// for some milliseconds, calls it now and then; no two do at the same time.
func (p *Peers) Look() {
	index := int(p.look.Add(1)) % len(p.peers)
	o := &p.peers[index]
	if o.raw == nil || o.ended.Load() {
		return
	}
	if err := o.raw.Control(o.peek); err == nil && o.sees {
		p.end(index)
	}
}

// Leave tells the others that the end of this process, which is to come, is none that they
// are to be told of.
func (p *Peers) Leave() {
	for i := range p.peers {
		if c := p.peers[i].from; c != nil {
			_, _ = c.Write([]byte{0})
		}
	}
}

// Close ends all connections: unless it has called Leave, for the others this process has
// ended. Nothing is told after it has returned.
func (p *Peers) Close() error {
	p.mu.Lock()
	p.over = true
	for i := range p.peers {
		if o := &p.peers[i]; o.to != nil {
			_ = o.to.Close()
		}
		if o := &p.peers[i]; o.from != nil {
			_ = o.from.Close()
		}
	}
	p.mu.Unlock()
	p.readers.Wait()
	p.unlisten()
	return nil
}
