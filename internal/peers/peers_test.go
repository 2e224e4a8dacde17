//go:build unix

package peers_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/peers"
)

// A process of these tests is this binary, started with these variables in its environment. It
// joins, and prints a line when it has joined and for each end that it sees. It does what it
// reads from its input.
const (
	envDir   = "PEERS_TEST_DIR"
	envIndex = "PEERS_TEST_INDEX"
	envSize  = "PEERS_TEST_SIZE"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(envDir); dir != "" {
		live(dir)
	}
	os.Exit(m.Run())
}

func live(dir string) {
	number := func(name string) int {
		n, err := strconv.Atoi(os.Getenv(name))
		if err != nil {
			log.Fatal(err)
		}
		return n
	}
	p, err := peers.Join(context.Background(), dir, number(envIndex), number(envSize))
	if err != nil {
		log.Fatal(err)
	}
	p.Watch(func(index int) { fmt.Println("ended", index) })
	fmt.Println("joined")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		endBy(in.Text(), p)
	}
}

// endBy ends this process.
func endBy(how string, p *peers.Peers) {
	switch how {
	case "exit 0", "exit 3":
		os.Exit(int(how[len(how)-1] - '0'))
	case "panic in a goroutine":
		go func() { panic(how) }()
		select {}
	case "log.Fatal":
		log.Fatal(how)
	case "fatal error":
		m := map[int]int{}
		for range 4 {
			go func() {
				for {
					m[0]++
				}
			}()
		}
		select {}
	case "child", "heir": // which outlives the process; an heir keeps all sockets open
		c := exec.Command("sleep", "1000")
		if how == "heir" {
			c.ExtraFiles = sockets()
		}
		if err := c.Start(); err != nil {
			log.Fatal(err)
		}
		fmt.Println("child", c.Process.Pid)
	case "close":
		_ = p.Close()
		fmt.Println("closed")
	case "leave":
		p.Leave()
		os.Exit(0)
	case "spin": // Go gets no events from the system
		runtime.GOMAXPROCS(1)
		for {
			p.Look()
			runtime.Gosched()
		}
	case "leave and stay":
		p.Leave()
		fmt.Println("left")
	case "kill 0", "kill 1", "kill 2", "kill 3":
		fmt.Println(p.Kill(int(how[len(how)-1] - '0')))
	default:
		log.Fatalf("%q", how)
	}
}

// sockets returns copies of the sockets of this process.
func sockets() (all []*os.File) {
	fds, _ := os.ReadDir("/proc/self/fd")
	for _, fd := range fds {
		if link, _ := os.Readlink("/proc/self/fd/" + fd.Name()); strings.HasPrefix(link, "socket:") {
			n, _ := strconv.Atoi(fd.Name())
			if n, err := syscall.Dup(n); err == nil {
				all = append(all, os.NewFile(uintptr(n), link))
			}
		}
	}
	return all
}

// A process is a process as a test sees it.
type process struct {
	*exec.Cmd
	in    io.Writer
	lines chan string
}

func start(t *testing.T, dir string, index, size int) *process {
	p := &process{Cmd: exec.Command(os.Args[0]), lines: make(chan string, 100)}
	p.Env = append(os.Environ(), fmt.Sprint(envDir, "=", dir), fmt.Sprint(envIndex, "=", index), fmt.Sprint(envSize, "=", size), "GOTRACEBACK=none")
	in, err := p.StdinPipe()
	require.NoError(t, err)
	out, err := p.StdoutPipe()
	require.NoError(t, err)
	p.in = in
	require.NoError(t, p.Start())
	go func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			p.lines <- s.Text()
		}
	}()
	t.Cleanup(func() {
		_ = p.Process.Kill()
		_ = p.Wait()
	})
	return p
}

func startAll(t *testing.T, dir string, n int) (all []*process) {
	for i := range n {
		all = append(all, start(t, dir, i, n))
	}
	for _, p := range all {
		require.Equal(t, "joined", p.says(t))
	}
	return all
}

// says waits for the next line of the process.
func (p *process) says(t *testing.T) string {
	t.Helper()
	select {
	case line := <-p.lines:
		return line
	case <-time.After(time.Minute):
		require.FailNow(t, "nothing in a minute")
		return ""
	}
}

// signals are sent to a process. What else a process does it reads from its input.
var signals = map[string]syscall.Signal{
	"SIGKILL": syscall.SIGKILL, "SIGSTOP": syscall.SIGSTOP, "SIGCONT": syscall.SIGCONT, "SIGSEGV": syscall.SIGSEGV, "SIGABRT": syscall.SIGABRT,
}

func (p *process) do(t *testing.T, what string) {
	if s, ok := signals[what]; ok {
		require.NoError(t, p.Process.Signal(s))
		return
	}
	_, err := fmt.Fprintln(p.in, what)
	require.NoError(t, err)
}

// newDir returns a directory for sockets. Names in the tests' own directory are too long.
func newDir(t *testing.T) string {
	dir, err := os.MkdirTemp("", "peers-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// play starts processes and carries out a script. 0:TEXT has process 0 do what the text says,
// 0>TEXT waits for this line of it, 0>A|B for two in any order, and 0. for its end.
func play(t *testing.T, n int, script ...string) []*process {
	all := startAll(t, newDir(t), n)
	for _, step := range script {
		switch p, text := all[step[0]-'0'], step[2:]; step[1] {
		case '.':
			_ = p.Wait()
		case '>':
			var said []string
			for range strings.Count(text, "|") + 1 {
				said = append(said, p.says(t))
			}
			require.ElementsMatch(t, strings.Split(text, "|"), said, step)
		default:
			p.do(t, text)
		}
	}
	return all
}

// No matter how a process ends, its end is reported to each of the others, once.
func TestEnds(t *testing.T) {
	for _, how := range []string{"exit 0", "exit 3", "panic in a goroutine", "log.Fatal", "fatal error", "SIGSEGV", "SIGABRT", "SIGKILL"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			play(t, 4, "2:"+how, "0>ended 2", "1>ended 2", "3>ended 2", "0:SIGKILL", "1>ended 0", "3>ended 0")
		})
	}
}

// The end of a process is reported when it has ended, and not before, whatever else processes do.
func TestReports(t *testing.T) {
	for name, script := range map[string][]string{
		"it is stopped":                 {"0:SIGSTOP", "1:exit 0", "2>ended 1", "0:SIGCONT", "0>ended 1", "0:SIGKILL", "2>ended 0"},
		"another looks in one thread":   {"0:spin", "2:SIGKILL", "0>ended 2", "1:SIGKILL", "0>ended 1"},
		"it leaves":                     {"0:leave", "0.", "1:exit 0", "2>ended 1"},
		"it leaves, and another looks":  {"2:spin", "0:leave", "0.", "1:exit 0", "2>ended 1"},
		"it closes: it gets no reports": {"0:close", "0>closed", "1>ended 0", "2>ended 0", "1:exit 0", "2>ended 1"},
	} {
		t.Run(name, func(t *testing.T) { require.Empty(t, play(t, 3, script...)[0].lines) })
	}
}

// Kill ends a process that is stopped, but not one that leaves or whose connections are closed.
func TestKill(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("it is unknown which process has a socket")
	}
	over := os.ErrProcessDone.Error()
	all := play(t, 4, "2:SIGSTOP", "0:kill 2", "0><nil>|ended 2", "2.", "1>ended 2", "3>ended 2",
		"1:close", "1>closed", "0>ended 1", "3>ended 1", "3:leave and stay", "3>left",
		"0:kill 0", "0>"+over, // itself
		"0:kill 1", "0>"+over, "0:kill 2", "0>"+over, "0:kill 3", "0>"+over)
	require.Equal(t, syscall.SIGKILL, all[2].ProcessState.Sys().(syscall.WaitStatus).Signal())
	for _, i := range []int{0, 1, 3} {
		require.NoError(t, all[i].Process.Signal(syscall.Signal(0)), "%d was to live", i)
	}
}

// A process has ended even if a child outlives it. If the child is an heir, which keeps its sockets
// open, a process finds the end that looks, before the system has closed the files.
func TestChildren(t *testing.T) {
	for _, test := range [][2]string{{"child", "SIGKILL"}, {"heir", "SIGKILL"}, {"heir", "exit 3"}, {"heir", "panic in a goroutine"}} {
		child, how := test[0], test[1]
		t.Run(child+", "+how, func(t *testing.T) {
			t.Parallel()
			if child == "heir" && runtime.GOOS != "linux" {
				t.Skip("no robust futexes")
			}
			all := play(t, 3, "0:"+child)
			pid, err := strconv.Atoi(strings.TrimPrefix(all[0].says(t), "child "))
			require.NoError(t, err)
			defer syscall.Kill(pid, syscall.SIGKILL)
			if child == "heir" {
				all[1].do(t, "spin")
			}
			all[0].do(t, how)
			require.Equal(t, "ended 0", all[1].says(t))
			require.NoError(t, syscall.Kill(pid, 0), "the child was to live")
			if child == "heir" {
				require.Empty(t, all[2].lines, "which does not look")
			}
		})
	}
}

// The end of a process is reported while others join.
func TestEndWhileJoining(t *testing.T) {
	dir := newDir(t)
	first := start(t, dir, 0, 3)
	untilThere(dir, 0)
	first.do(t, "SIGKILL")
	_ = first.Wait()
	for _, p := range []*process{start(t, dir, 1, 3), start(t, dir, 2, 3)} {
		require.ElementsMatch(t, []string{"joined", "ended 0"}, []string{p.says(t), p.says(t)})
	}
	require.NoDirExists(t, dir)
}

// If a process has ended before the others could see it, Ended reports it to them.
func TestEnded(t *testing.T) {
	leave := func(t *testing.T, socket string) { // as a process that is killed does
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
		require.NoError(t, err)
		l.SetUnlinkOnClose(false)
		require.NoError(t, l.Close())
	}
	for when, left := range map[string]string{"before it came": "", "while it listens": "1-", "before the others came": "1"} {
		t.Run(when, func(t *testing.T) {
			dir := newDir(t)
			if left != "" {
				leave(t, filepath.Join(dir, left))
			}
			first, err := peers.Listen(dir, 0, 3)
			require.NoError(t, err)
			third := start(t, dir, 2, 3)
			require.NoError(t, peers.Ended(dir, 1))
			require.NoError(t, first.Join(t.Context()))
			defer first.Close()
			told := make(chan int, 1)
			first.Watch(func(index int) { told <- index })
			require.Equal(t, 1, <-told)
			require.ElementsMatch(t, []string{"joined", "ended 1"}, []string{third.says(t), third.says(t)})
			require.NoDirExists(t, dir)
		})
	}
	require.ErrorIs(t, peers.Ended(filepath.Join(t.TempDir(), "none"), 0), fs.ErrNotExist)
}

// A process that has listened and does not join leaves nothing behind.
func TestListenAndClose(t *testing.T) {
	dir := newDir(t)
	first, err := peers.Listen(dir, 0, 2)
	require.NoError(t, err)
	second, err := peers.Listen(dir, 1, 2)
	require.NoError(t, err)
	require.NoError(t, first.Close())
	require.DirExists(t, dir)
	require.NoError(t, second.Close())
	require.NoDirExists(t, dir)
}

// untilThere waits until a process has its socket in a directory.
func untilThere(dir string, index int) {
	for {
		if _, err := os.Lstat(filepath.Join(dir, strconv.Itoa(index))); err == nil {
			return
		}
		runtime.Gosched()
	}
}

// Join names a process that never comes.
func TestMissing(t *testing.T) {
	dir := newDir(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err := peers.Join(ctx, dir, 1, 3)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "of 3 processes [0 2] have not come")
	require.NoDirExists(t, dir)
}

// A connection without an index, or with a wrong one, changes nothing.
func TestStrangers(t *testing.T) {
	dir := newDir(t)
	first := start(t, dir, 0, 2)
	untilThere(dir, 0)
	for _, hello := range []string{"", "\x01", "\x00\x00\x00\x00", "\x02\x00\x00\x00", "\xff\xff\xff\xff"} {
		c, err := net.Dial("unix", filepath.Join(dir, "0"))
		require.NoError(t, err)
		defer c.Close()
		_, err = c.Write([]byte(hello))
		require.NoError(t, err)
	}
	second := start(t, dir, 1, 2)
	require.Equal(t, "joined", first.says(t))
	require.Equal(t, "joined", second.says(t))
	second.do(t, "SIGKILL")
	require.Equal(t, "ended 1", first.says(t))
}

func TestBadArguments(t *testing.T) {
	for _, me := range []int{-1, 2} {
		_, err := peers.Join(t.Context(), newDir(t), me, 2)
		require.ErrorContains(t, err, fmt.Sprintf("process %d of 2, expected one of 0 to 1", me))
	}
	dir := newDir(t)
	require.NoError(t, os.Chmod(dir, 0o755))
	_, err := peers.Join(t.Context(), dir, 0, 2)
	require.ErrorContains(t, err, "expected a directory of this user alone")
	_, err = peers.Join(t.Context(), filepath.Join(dir, "none"), 0, 2)
	require.ErrorIs(t, err, os.ErrNotExist)
	long := filepath.Join(newDir(t), strings.Repeat("long", 50))
	require.NoError(t, os.Mkdir(long, 0o700))
	_, err = peers.Join(t.Context(), long, 0, 2)
	require.ErrorContains(t, err, "expected a shorter name, for sockets")
}
