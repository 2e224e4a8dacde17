package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/inject"
)

var (
	dir     = flag.String("dir", "", "for what the script and the processes tell each other")
	end     = flag.String("end", "", "how processes of other hosts than rank 0's end: exit, kill, or not")
	timeout = flag.Duration("timeout", 10*time.Second, "of the detector")
	quorum  = flag.Bool("quorum", false, "processes without a majority end")
	pings   = flag.Bool("pings", false, "the last process pings all others")
	long    = flag.Bool("long", false, "long messages are under way between the hosts all the time")
)

func main() {
	flag.Parse()
	p := new(process)
	var detector mpicx.Detector = mpicx.Ring{Timeout: *timeout, Quorum: *quorum}
	if *pings {
		detector = mpicx.Ping{Timeout: *timeout, Quorum: *quorum}
	}
	err := mpicx.Run(context.Background(), p.run, mpicx.WithDetector(detector))
	switch {
	case errors.Is(err, mpicx.ErrFenced):
		p.note("fenced")
		os.Exit(4)
	case err != nil:
		p.note("failed: %v", err)
		os.Exit(1)
	}
	p.note("ended")
}

type process struct {
	rank int
	free []int64 // the buffer of a receive that a death has ended
}

// sentinel is what is written to such buffers. It has to stay.
const sentinel int64 = 0x5a5a5a5a5a5a5a5a

// length of what is added up: long packets are under way between the hosts when processes end.
const length = 6000

// note appends a line to this process's file.
func (p *process) note(format string, args ...any) {
	f, err := os.OpenFile(filepath.Join(*dir, fmt.Sprint("rank", p.rank)), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err == nil {
		_, err = fmt.Fprintf(f, "%s rank %d: %s\n", time.Now().Format("05.000"), p.rank, fmt.Sprintf(format, args...))
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

func (p *process) run(ctx context.Context, world *mpicx.Comm) error {
	p.rank = world.Rank()
	near, err := result(ctx, world.SplitShared(0))
	if err != nil {
		return err
	}
	first := []int{world.Rank()} // the lowest rank of this machine
	if _, err := result(ctx, mpicx.Bcast(near, first, 0)); err != nil {
		return err
	}
	p.note("process %d, with %d of %d on its host", os.Getpid(), near.Size(), world.Size())
	comm := world
	for i := 0; ; i++ {
		in, sum := make([]int, length), make([]int, length)
		in[0] = 1
		if _, err := os.Stat(filepath.Join(*dir, "stop")); err == nil {
			in[1] = 1
		}
		if i := slices.IndexFunc(p.free, func(v int64) bool { return v != sentinel }); i >= 0 {
			return fmt.Errorf("element %d of a buffer of %d was written after the error", i, len(p.free))
		}
		if *long && comm == world {
			err = p.exchange(ctx, world)
		} else {
			time.Sleep(5 * time.Millisecond)
		}
		if err == nil {
			_, err = result(ctx, mpicx.Allreduce(comm, in, sum, mpicx.Sum))
		}
		if err != nil {
			if first[0] > 0 {
				p.end(world)
			}
			if comm, err = p.recover(ctx, world, err); err != nil {
				return err
			}
			continue
		}
		if sum[0] != comm.Size() {
			return fmt.Errorf("%d ranks add up to %d", comm.Size(), sum[0])
		}
		switch {
		case sum[1] > 0:
			return nil
		case i == 100 && world.Rank() == 0:
			if err := os.WriteFile(filepath.Join(*dir, "begun"), nil, 0o666); err != nil {
				return err
			}
		case i == 200 && first[0] > 0:
			p.end(world)
		}
	}
}

// result waits for an operation without spinning, because the processes would compete for cores.
func result[T any](ctx context.Context, f *future.Future[T]) (T, error) {
	<-f.Done()
	return f.Get(ctx)
}

// exchange sends and receives a long message, half of the ranks away.
func (p *process) exchange(ctx context.Context, world *mpicx.Comm) error {
	const length = 2 << 20 // 16 MiB
	away := (world.Rank() + world.Size()/2) % world.Size()
	to, from := make([]int64, length), make([]int64, length)
	sent, received := mpicx.Send(world, to, away, 0), mpicx.Recv(world, from, away, 0)
	_, err := result(ctx, received)
	if err == nil {
		_, err = result(ctx, sent)
	} else {
		p.free = from
		for i := range from {
			from[i] = sentinel
		}
	}
	return err
}

// end ends this process, if the flag says so.
func (*process) end(world *mpicx.Comm) {
	switch *end {
	case "exit":
		os.Exit(3)
	case "kill":
		inject.Die(world)
	}
}

// recover makes a communicator of the survivors. Several deaths may be found one after another.
func (p *process) recover(ctx context.Context, world *mpicx.Comm, err error) (*mpicx.Comm, error) {
	for {
		c, ok := errors.AsType[*mpicx.CommCorruptedError](err)
		if !ok || errors.Is(err, mpicx.ErrFenced) {
			return nil, err
		}
		p.note("told that %v have died", c.Dead)
		rest, failed := result(ctx, world.Shrink()) // always of the world, because generations are bounded
		if failed != nil {
			return nil, failed
		}
		if _, err = result(ctx, rest.Barrier()); err == nil {
			p.note("goes on with %d", rest.Size())
			return rest, nil
		}
	}
}
