package transporttest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// A side is one rank in a test: its communicator, with short methods to use it. The ranks form a
// ring: a rank sends to its right and receives from its left. A single rank is its own left and
// right, so one program tests any number of ranks.
type side struct {
	*testing.T
	transport.Comm
	epoch func() transport.Epoch // of the requests to come
	*tally
}

// tally is shared by all sides of one rank in one test.
type tally struct {
	endedTwice atomic.Int32 // requests
	begun      atomic.Int32 // sends and receives
	mu         sync.Mutex
	made       []transport.Comm // by Sub
}

func newSide(t *testing.T, c transport.Comm) *side {
	return &side{t, c, c.Epoch, new(tally)}
}

// on returns the side of the same rank on another communicator.
func (s *side) on(c transport.Comm) *side { return &side{s.T, c, c.Epoch, s.tally} }

// at returns s with requests of epoch e.
func (s *side) at(e transport.Epoch) *side {
	return &side{s.T, s.Comm, func() transport.Epoch { return e }, s.tally}
}

// Errorf says which rank failed.
func (s *side) Errorf(format string, args ...any) {
	s.Helper()
	s.T.Errorf("rank %d of %d: %s", s.Rank(), s.Size(), fmt.Sprintf(format, args...))
}

func (s *side) previous() int { return (s.Rank() + s.Size() - 1) % s.Size() }
func (s *side) next() int     { return (s.Rank() + 1) % s.Size() }

// finish checks what holds after every test: no request is pending, and each one ended once.
func (s *side) finish() {
	s.barrier()
	require.Empty(s, transport.Pending(s), "requests that wait after the test")
	require.Zero(s, s.endedTwice.Load(), "requests that ended more than once")
	s.mu.Lock()
	made := slices.Clone(s.made)
	s.mu.Unlock()
	for _, c := range made {
		s.on(c).close()
	}
}

// close closes a communicator that sub made.
func (s *side) close() {
	s.Helper()
	s.mu.Lock()
	s.made = slices.DeleteFunc(s.made, func(c transport.Comm) bool { return c == s.Comm })
	s.mu.Unlock()
	require.NoError(s, s.Close())
}

// barrierTag and noteTag are used by the suite only. AnyTag does not match them.
const (
	barrierTag = -1000
	noteTag    = -1001
)

// barrier returns once all ranks have called it (dissemination: in round k a rank sends to the one
// 2^k further on). Messages sent before it may arrive after it.
func (s *side) barrier() {
	s.Helper()
	for d := 1; d < s.Size(); d *= 2 {
		recv := s.recv((s.Rank()+s.Size()-d)%s.Size(), barrierTag, nil)
		s.send((s.Rank()+d)%s.Size(), barrierTag, nil).ok()
		recv.ok()
	}
}

// sub makes a communicator.
func (s *side) sub(name transport.Name, members []int) *side {
	s.Helper()
	c, err := s.Sub(name, members)
	require.NoError(s, err, "Sub(%v, %v)", name, members)
	s.mu.Lock()
	s.made = append(s.made, c)
	s.mu.Unlock()
	return s.on(c)
}

// dup makes a communicator of all ranks.
func (s *side) dup(seq uint64) *side {
	s.Helper()
	return s.sub(transport.Name{Epoch: s.epoch(), Seq: seq}, nil)
}

// await waits for something other than a request.
func await[T any](s *side, c <-chan T) T {
	s.Helper()
	tooLong := time.NewTimer(limit)
	defer tooLong.Stop()
	select {
	case v := <-c:
		return v
	case <-tooLong.C:
		require.Fail(s, "gave up", "after %v", limit)
		panic("not reached")
	}
}

// together runs f in n goroutines of this rank and waits for all.
func (s *side) together(n int, f func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { f(i) })
	}
	all.Wait()
}

// seed is the same at all ranks and different in every run, unless the variable TRANSPORTTEST_SEED
// sets it.
func (s *side) seed() uint64 {
	s.Helper()
	buf := make([]byte, 8)
	if s.Rank() == 0 {
		seed, err := strconv.ParseUint(os.Getenv("TRANSPORTTEST_SEED"), 10, 64)
		if err != nil {
			seed = rand.Uint64()
		}
		s.Logf("TRANSPORTTEST_SEED=%d", seed)
		binary.LittleEndian.PutUint64(buf, seed)
		for r := 1; r < s.Size(); r++ {
			s.send(r, noteTag, buf).ok()
		}
	} else {
		s.recv(0, noteTag, buf).ok()
	}
	return binary.LittleEndian.Uint64(buf)
}

// random returns a source of random numbers that depends on the seed and the given numbers only, so
// each rank can compute what others drew.
func random(seed uint64, of ...int) *rand.Rand {
	stream := uint64(len(of))
	for _, n := range of {
		stream = (stream ^ uint64(n)) * 0x9e3779b97f4a7c15
		stream ^= stream >> 29
	}
	return rand.New(rand.NewPCG(seed, stream))
}

// payload returns n bytes that depend on the given numbers.
func payload(n int, of ...int) []byte {
	r := random(uint64(n), of...)
	buf := make([]byte, n+8)
	from := r.IntN(len(noise))
	for at := 0; at < n; from = 0 {
		at += copy(buf[at:n], noise[from:])
	}
	binary.LittleEndian.PutUint64(buf, r.Uint64())
	return buf[:n:n]
}

// noise contains the bytes of all payloads.
var noise = func() []byte {
	r, buf := random(1), make([]byte, 1<<16)
	for i := range buf {
		buf[i] = byte(r.Uint32())
	}
	return buf
}()

// Sizes of messages. Transports treat short and long ones differently; each has its own limit.
const (
	small = 8
	large = 70_000
)

var sizes = []int{0, 1, small, 63, 64, 65, 1000, 4095, 4096, 4097, 65_536, large}

// meetings are the ways in which a message and its receive can meet.
var meetings = []meeting{"receive first", "message first"}

type meeting string

// inOrder lets every rank post its receives and then send, or the other way round.
func (m meeting) inOrder(s *side, send, receive func()) {
	s.Helper()
	s.barrier()
	first, second := receive, send
	if m == "message first" {
		first, second = send, receive
	}
	first()
	s.barrier()
	second()
}

// pair lets every rank send to its right, and begin a receive or probe of what its left sends.
func (m meeting) pair(s *side, mode transport.Mode, tag int, buf []byte, receive func() *op) (send, received *op) {
	s.Helper()
	m.inOrder(s, func() { send = s.sendAs(mode, s.next(), tag, buf) }, func() { received = receive() })
	return send, received
}

// A way is how a message is sent, and meets its receive.
type way struct {
	meeting
	mode transport.Mode
	size int
}

// ways are all ways of messages of these sizes; without modes they are plain.
func ways(sizes []int, modes ...transport.Mode) (all []way) {
	if modes == nil {
		modes = []transport.Mode{0}
	}
	for _, mode := range modes {
		for _, size := range sizes {
			for _, m := range meetings {
				all = append(all, way{m, mode, size})
			}
		}
	}
	return all
}

// same checks bytes without printing all of them.
func (s *side) same(want, got []byte, what string, args ...any) {
	s.Helper()
	if bytes.Equal(want, got) {
		return
	}
	s.Errorf("%s: %d bytes %.32x…, want %d bytes %.32x…", fmt.Sprintf(what, args...), len(got), got, len(want), want)
	s.FailNow()
}
