package observe

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// These say which operations are kept: the first keptAfter bytes after each other event, and the
// last keptBefore bytes before it.
const (
	keptAfter  = 1 << 16
	keptBefore = 1 << 20
)

// A Timeline writes the file of a process. Many goroutines may use it.
type Timeline struct {
	name  string
	clock time.Time // T is counted from here
	ids   atomic.Int64
	warn  func(error)

	mu     sync.Mutex
	file   file // nil: closed, or a write has failed
	users  int
	runs   int
	failed bool
	// The next line goes to at. Lines before kept are never overwritten. start is the position of
	// the first line of an operation after kept; -1: there is none yet. Once keptBefore bytes
	// follow start, lines are written from start again, and at is before end, the end of the file.
	at, end, kept, start int64
}

type file interface {
	io.WriterAt
	io.Closer
}

// timelines are the Timelines of this process, by directory.
var timelines = struct {
	sync.Mutex
	in map[string]*Timeline
}{in: make(map[string]*Timeline)}

// OpenTimeline opens this process's file in a directory, which it makes if necessary. Each call
// returns the same Timeline. It calls warn once if a write fails; the rest is then missing.
func OpenTimeline(dir, job string, warn func(error)) (w *Timeline, run int, err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return nil, 0, err
	}
	timelines.Lock()
	defer timelines.Unlock()
	w = timelines.in[dir]
	if w == nil {
		w = &Timeline{clock: time.Now(), warn: warn}
		timelines.in[dir] = w
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file == nil && !w.failed {
		if err := w.open(dir, job); err != nil {
			return nil, 0, err
		}
	}
	w.users++
	w.runs++
	return w, w.runs, nil
}

// open opens the file that Close has closed, or makes one if there is none, or it was removed.
func (w *Timeline) open(dir, job string) error {
	if w.name == "" {
		return w.create(dir, job)
	}
	f, err := os.OpenFile(w.name, os.O_WRONLY, 0)
	switch {
	case os.IsNotExist(err):
		return w.create(dir, job)
	case err != nil:
		return err
	}
	w.file = f
	return nil
}

// create makes the file, and writes its Head.
func (w *Timeline) create(dir, job string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	var f *os.File
	for n := 0; f == nil; n++ { // an earlier process may have had the number
		w.name = filepath.Join(dir, fmt.Sprintf("%s-%d-%d.jsonl", filepath.Base(host), os.Getpid(), n))
		if f, err = os.OpenFile(w.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666); err != nil && !os.IsExist(err) {
			return err
		}
	}
	if job == "" {
		job = fmt.Sprintf("%s-%d-%d", host, os.Getpid(), w.clock.UnixNano())
	}
	w.file = f
	w.at, w.end, w.kept, w.start = 0, 0, 0, -1
	b, err := json.Marshal(Head{Format, job, machine(host), host, os.Getpid(), w.clock})
	if err == nil {
		err = w.append(append(b, '\n'), false)
	}
	if err != nil {
		f.Close()
		w.file, w.name = nil, "" // open makes another one
	}
	return err
}

// Close releases the Timeline. The file is closed when there have been as many Closes as calls of
// OpenTimeline.
func (w *Timeline) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.users--; w.users == 0 && w.file != nil {
		w.file.Close()
		w.file = nil
	}
}

// now returns the T of an event that happens now.
func (w *Timeline) now() int64 { return int64(time.Since(w.clock)) }

// write writes a line. If its T is 0, write sets it to now.
func (w *Timeline) write(l Event) {
	if l.T == 0 {
		l.T = w.now()
	}
	b, err := json.Marshal(&l)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file == nil {
		return
	}
	if err == nil {
		err = w.append(append(b, '\n'), l.Kind.isOperation())
	}
	if err != nil {
		w.failed = true
		w.file.Close()
		w.file = nil
		w.warn(err)
	}
}

// wait writes that a goroutine begins to wait in e.Op. The goroutine calls over when it stops.
func (w *Timeline) wait(e Event) (over func()) {
	e.T, e.ID = w.now(), w.ids.Add(1)
	w.write(e)
	return func() {
		since := e.T
		e.Kind, e.T = Waited, w.now()
		e.For = e.T - since
		w.write(e)
	}
}

// append writes a line after all others or, if it is of an operation, over older ones.
func (w *Timeline) append(line []byte, operation bool) error {
	n := int64(len(line))
	switch {
	case !operation:
		w.at = w.end
	case w.start < 0 && w.at >= w.kept:
		w.start = w.at
	case w.start < 0:
	case w.at == w.end && w.at+n > w.start+keptBefore, w.at < w.end && w.at+n > w.end:
		w.at = w.start
	}
	if _, err := w.file.WriteAt(line, w.at); err != nil {
		return err
	}
	w.at += n
	w.end = max(w.end, w.at)
	if !operation {
		w.kept, w.start = w.at+keptAfter, -1
	}
	return nil
}

// machine returns a name for the processes that share a clock. With Linux, containers with
// different host names share it.
func machine(host string) string {
	if b, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		return strings.TrimSpace(string(b))
	}
	return host
}
