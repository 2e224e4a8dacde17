//go:build unix

package peers

import (
	"cmp"
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
	"syscall"
	"time"
)

// Join connects process me of n with the others, as Listen and then Join of Peers do.
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

// Listen begins to connect process me of n with the others, which call it with the same
// directory. Only this user may enter the directory, which must be empty before. From now on
// the others see the end of this process. The caller has to call Join or Close next.
func Listen(dir string, me, n int) (*Peers, error) {
	if me < 0 || me >= n {
		return nil, fmt.Errorf("process %d of %d, expected one of 0 to %d", me, n, n-1)
	}
	if err := private(dir); err != nil {
		return nil, err
	}
	if len(early(dir, n)) > longest {
		return nil, fmt.Errorf("%s, expected a shorter name, for sockets: up to %d bytes with theirs", dir, longest)
	}
	p := &Peers{me: me, dir: dir, others: make([]peer, n), changed: make(chan struct{}, 1)}
	p.marks = newMarks(dir, me, n)
	var err error
	if p.listener, err = listen(dir, me); err == nil {
		if err = os.Rename(early(dir, me), socket(dir, me)); err != nil {
			_ = p.listener.Close()
		}
	}
	if err != nil {
		p.marks.leave()
		return nil, err
	}
	return p, nil
}

// Ended tells processes that join in dir that a process has ended. It may have ended
// before it called Listen, or during the call.
func Ended(dir string, index int) error {
	_ = os.Remove(early(dir, index))
	l, err := listen(dir, index)
	if err != nil {
		return err
	}
	_ = l.Close()
	defer os.Remove(early(dir, index))
	if err := os.Link(early(dir, index), socket(dir, index)); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// private returns an error if other users may enter a directory.
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

// longest is how long the path of a socket may be on every system.
const longest = 100

// socket returns the name of a process's socket; early, its name before it accepts connections. If
// a socket has its name and refuses connections, its process has ended.
func socket(dir string, index int) string { return filepath.Join(dir, strconv.Itoa(index)) }
func early(dir string, index int) string  { return socket(dir, index) + "-" }

func listen(dir string, index int) (*net.UnixListener, error) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: early(dir, index), Net: "unix"})
	if err == nil {
		l.SetUnlinkOnClose(false)
	}
	return l, err
}

// unlisten undoes Listen.
func (p *Peers) unlisten() {
	if p.listener != nil {
		_ = p.listener.Close()
		if p.refused == nil {
			_ = os.Remove(socket(p.dir, p.me))
			p.clear()
		}
		p.listener = nil
	}
}

// Join connects this process with the others. The last process that joins, or closes, removes
// the directory. Join returns once all others have come, or have ended. If ctx ends first, it
// returns an error that names the processes that have not come. If the system refuses a
// connection, it returns that error. After an error the caller has to call Close: to the others,
// this process has ended.
func (p *Peers) Join(ctx context.Context) error {
	defer p.unlisten()
	var all sync.WaitGroup
	defer all.Wait()
	defer p.listener.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	all.Go(func() { p.accept(ctx, p.listener) })
	for i := range p.others {
		if i != p.me {
			all.Go(func() { p.connect(ctx, i, socket(p.dir, i)) })
		}
	}
	for {
		missing, refused := p.missing()
		if refused != nil || len(missing) == 0 {
			return refused
		}
		select {
		case <-p.changed:
		case <-ctx.Done():
			return fmt.Errorf("of %d processes %v have not come: %w", len(p.others), missing, context.Cause(ctx))
		}
	}
}

// clear removes the directory if no process looks for another there any more. A process that
// has joined has removed its name, so then only names of processes that have ended are left.
func (p *Peers) clear() {
	names, err := os.ReadDir(p.dir)
	for _, n := range names {
		if n.Name() == marksName {
			continue
		}
		if i, e := strconv.Atoi(n.Name()); e != nil || i < 0 || i >= len(p.others) || !p.others[i].ended.Load() {
			return
		}
	}
	if err == nil {
		_ = os.RemoveAll(p.dir)
	}
}

// missing returns the processes that have neither connected nor ended, and refused.
func (p *Peers) missing() (missing []int, refused error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.others {
		if o := &p.others[i]; i != p.me && !o.ended.Load() && (o.to == nil || o.from == nil) {
			missing = append(missing, i)
		}
	}
	return missing, p.refused
}

// refuse ends Join: the system refuses a connection.
func (p *Peers) refuse(with string, err error) {
	p.change(func() { p.refused = cmp.Or(p.refused, fmt.Errorf("no connection %s: %w", with, err)) })
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

// accept accepts connections of other processes, until l is closed or the system refuses one.
// Each begins with the process's index.
func (p *Peers) accept(ctx context.Context, l *net.UnixListener) {
	var all sync.WaitGroup
	defer all.Wait()
	for {
		c, err := l.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		} else if err != nil {
			p.refuse("from another process", err)
			return
		}
		all.Go(func() {
			stop := context.AfterFunc(ctx, func() { _ = c.SetReadDeadline(time.Unix(1, 0)) })
			var hello [4]byte
			_, err := io.ReadFull(c, hello[:])
			index := int(binary.LittleEndian.Uint32(hello[:]))
			ok := stop() && err == nil && index < len(p.others) && index != p.me
			if ok {
				if _, err := sameUser(c); err != nil {
					p.refuse(fmt.Sprint("from process ", index), err)
					ok = false
				}
			}
			if ok {
				p.change(func() {
					if ok = p.others[index].from == nil && !p.over; ok {
						p.others[index].from = c
					}
				})
			}
			if !ok {
				_ = c.Close()
			}
		})
	}
}

// connect connects with another process, once its socket is there.
func (p *Peers) connect(ctx context.Context, index int, name string) {
	var d net.Dialer
	o := &p.others[index]
	most := max(10*time.Millisecond, time.Duration(len(p.others))*time.Millisecond/2) // else many would only try
	for wait := 50 * time.Microsecond; ctx.Err() == nil; wait = min(2*wait, most) {
		c, err := d.DialContext(ctx, "unix", name)
		pid := 0
		if err == nil {
			if pid, err = sameUser(c.(*net.UnixConn)); err != nil {
				_ = c.Close()
			}
		}
		switch {
		case errors.Is(err, syscall.ECONNREFUSED):
			p.end(index)
			return
		case errors.Is(err, fs.ErrNotExist), os.IsTimeout(err), ctx.Err() != nil && err != nil: // it has not come, or has not accepted others (EAGAIN)
		case err != nil:
			p.refuse(fmt.Sprint("to process ", index), err)
			return
		default:
			to := c.(*net.UnixConn)
			var hello [4]byte
			binary.LittleEndian.PutUint32(hello[:], uint32(p.me))
			_, _ = to.Write(hello[:]) // if it has ended, the reader sees it
			raw, _ := to.SyscallConn()
			p.change(func() { o.to, o.raw, o.pid = to, raw, pid })
			p.readers.Go(func() { p.read(index) })
			return
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
}
