//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package machine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/mpicx/go-mpicx/internal/peers"
	"github.com/mpicx/go-mpicx/internal/transport/node"
)

// A Job is the launcher's side of a job.
type Job struct {
	Place // the launcher's, after the last rank
	// Started, unless it is nil, is called when a process has been started.
	Started func(rank, pid int)
	// Grace is how long the processes have to end after the first SIGTERM or SIGINT that is passed
	// on to them. Then, or when one more comes, Run kills those that are left; 0: it does not.
	Grace time.Duration
	// Ask is the signal on which a process of a job says where it is, see Tell; 0: none does.
	Ask syscall.Signal

	roster roster
	shared []byte // the memory of package node
	stop   context.CancelCauseFunc
	lives  *os.File      // locked while this process lives
	ready  chan struct{} // closed when all have come, or stop has been called; the fields below are read only then
	peers  *peers.Peers  // nil: it could not listen
	err    error         // not all have come
}

// NewJob makes a job that begins with n processes; later more may be started in it. The caller
// starts them, each with the Variables of its Place. When the caller's process ends, they end too.
func NewJob(n, later int) (*Job, error) {
	if err := Fits(n, later); err != nil {
		return nil, err
	}
	j := &Job{Place: Place{Rank: n, size: n, later: later}, ready: make(chan struct{})}
	if err := j.make("/dev/shm"); err != nil { // which is memory, if it exists and has room
		if other := j.make(os.TempDir()); other != nil {
			return nil, fmt.Errorf("%d bytes of shared memory: %w; %w", memorySize(j.all()), err, other)
		}
	}
	var ctx context.Context
	ctx, j.stop = context.WithCancelCause(context.Background())
	go func() {
		defer close(j.ready)
		if j.peers, j.err = peers.Listen(j.sockets(), n, n+1); j.err == nil {
			j.err = j.peers.Join(ctx)
		}
		if j.later == 0 && j.err == nil {
			_ = os.Remove(j.memory()) // all have mapped it, or none will
			_ = os.Remove(j.dir)
		}
	}()
	return j, nil
}

// Fits returns an error if a job can't have this many processes.
func Fits(n, later int) error {
	if n >= 1 && later >= 0 && n+later <= node.MostNeighbours {
		return nil
	}
	those := ""
	if later != 0 {
		those = fmt.Sprintf(", and %d later", later)
	}
	return fmt.Errorf("%d processes%s, expected 1 to %d: each looks for messages of each", n, those, node.MostNeighbours)
}

// make makes the job's directory and its files.
func (j *Job) make(in string) (err error) {
	sweep(in)
	if j.dir, err = os.MkdirTemp(in, fmt.Sprint(prefix, os.Getpid(), "-")); err != nil {
		return err
	}
	if j.dir, err = filepath.Abs(j.dir); err == nil {
		err = os.Mkdir(j.sockets(), 0o700)
	}
	if err == nil {
		j.lives, err = makeFile(j.memory(), memorySize(j.all()))
	}
	var memory []byte
	if err == nil {
		memory, err = node.MapFile(j.memory(), memorySize(j.all()))
	}
	if err == nil {
		j.roster, j.shared = rosterOf(memory, j.all()), memory[rosterSize(j.all()):]
		j.roster.begin(j.size)
	}
	if err != nil {
		_ = os.RemoveAll(j.dir)
	}
	return err
}

// makeFile makes a file for the job's memory, and locks it before it has its name.
func makeFile(name string, size int) (*os.File, error) {
	f, err := node.MakeFile(name+"-", size)
	if err != nil {
		return nil, err
	}
	if err = lock(f); err == nil {
		err = os.Rename(name+"-", name)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// lock fails if a process holds the file's lock, which it does until it ends.
func lock(f *os.File) error {
	return os.NewSyscallError("flock", syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB))
}

const prefix = "mpicxrun-"

// sweep removes the files of jobs whose launchers were killed before all processes had begun,
// including the processes that might be started later.
func sweep(in string) {
	names, _ := filepath.Glob(filepath.Join(in, prefix+"*", "memory"))
	for _, name := range names {
		f, err := os.OpenFile(name, os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
		if err != nil {
			continue
		}
		if lock(f) == nil {
			_ = os.RemoveAll(filepath.Dir(name))
		}
		_ = f.Close()
	}
}

// of returns the place of a rank.
func (j *Job) of(rank int) Place { return Place{j.dir, rank, j.size, j.later} }

// ended reports the end of a process to the others, which do not see it if the process had not
// come, or if one of the two was started later. It returns the state that the process was in.
func (j *Job) ended(rank int) state {
	j.roster.claim(rank, never)
	was := j.roster.state(rank)
	if j.later > 0 && !j.roster.over() {
		j.roster.seen(rank)
		node.WakeAll(j.shared, j.all())
	}
	if j.of(rank).isLater() {
		return was
	}
	select {
	case <-j.ready:
	default:
		// If the directory is gone, all have come.
		if err := peers.Ended(j.sockets(), rank); err != nil && !errors.Is(err, fs.ErrNotExist) {
			j.stop(fmt.Errorf("the others can't be told of the end of rank %d: %w", rank, err))
		}
	}
	return was
}

// Close removes the files of the job that are left.
func (j *Job) Close() {
	j.stop(nil)
	<-j.ready
	_ = os.RemoveAll(j.dir)
	_ = j.lives.Close()
	if j.peers != nil {
		_ = j.peers.Close()
	}
}
