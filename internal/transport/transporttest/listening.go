package transporttest

import (
	"encoding/binary"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/transport"
)

var listening = []test{
	{"MessagesOfOneRankComeInOrder", 1, listenInOrder},
	{"WhatCameBeforeTheListenerIsKept", 2, listenLate},
	{"AListenerMayAnswerWithoutEnd", 1, listenAndAnswer},
	{"EpochsAndRevokesDoNotMatter", 1, listenAcrossAdvance},
	{"NothingComesToOneThatHasClosed", 2, listenAndClose},
}

// A listener sends numbers, and checks that it gets those of each rank from 0 on.
type listener struct {
	*side
	wanted    int
	all       chan struct{} // closed once as many as wanted have arrived
	onMessage func(number int)

	asked atomic.Bool

	mu   sync.Mutex
	come int
	next []int // by source
	out  []outgoing
}

type outgoing struct{ to, number int }

func (s *side) listener(wanted int) *listener {
	return &listener{side: s, wanted: wanted, all: make(chan struct{}), next: make([]int, s.Size())}
}

// listen starts a listener for the given number of messages; its wait waits for them.
func (s *side) listen(wanted int) *listener {
	l := s.listener(wanted)
	s.Listen(l)
	return l
}

func (l *listener) Died(int) {}

func (l *listener) Take(from int, b []byte) {
	number := int(binary.LittleEndian.Uint64(b))
	l.mu.Lock()
	want := l.next[from]
	l.next[from]++
	l.come++
	last := l.come == l.wanted
	l.mu.Unlock()
	if number != want {
		l.Errorf("gets number %d from rank %d, expected %d", number, from, want)
	}
	if l.onMessage != nil {
		if n := takesUnderway(); n > 1 {
			l.Errorf("is in %d calls of Take, one inside of another", n)
		}
		l.onMessage(number)
	}
	if last {
		close(l.all)
	}
}

// takesUnderway counts the calls of Take that this goroutine is in.
func takesUnderway() (n int) {
	var callers [256]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers[:])])
	for more := true; more; {
		var frame runtime.Frame
		if frame, more = frames.Next(); strings.HasSuffix(frame.Function, ".(*listener).Take") {
			n++
		}
	}
	return n
}

func (l *listener) Purpose([]byte) string { return "" }

func (l *listener) Next() (to int, payload []byte, ok bool) {
	if l.asked.Swap(true) {
		l.Errorf("is asked by two at a time")
	}
	defer l.asked.Store(false)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.out) == 0 {
		return 0, nil, false
	}
	m := l.out[0]
	l.out = l.out[1:]
	return m.to, binary.LittleEndian.AppendUint64(nil, uint64(m.number)), true
}

func (l *listener) tell(to, number int) {
	l.mu.Lock()
	l.out = append(l.out, outgoing{to, number})
	l.mu.Unlock()
	l.Poke()
}

// wait waits for the wanted messages.
func (l *listener) wait() {
	l.Helper()
	tooLong := time.NewTimer(limit)
	defer tooLong.Stop()
	select {
	case <-l.all:
	case <-tooLong.C:
		require.Fail(l, "messages did not come", "%d of %d, after %v", l.come, l.wanted, limit)
	}
}

const numbers = 100

func listenInOrder(s *side) {
	l := s.dup(1).listen(numbers * s.Size())
	for i := range numbers {
		for r := range s.Size() {
			l.tell(r, i)
		}
	}
	l.wait()
	s.barrier()
}

// Rank 0 begins to listen after other ranks have sent it messages, and while they still send.
func listenLate(s *side) {
	c := s.dup(1)
	if s.Rank() == 0 {
		l := c.listener(2 * numbers * (s.Size() - 1))
		l.tell(1, 0) // before Listen: the transport asks for it then
		s.barrier()
		l.Listen(l)
		l.wait()
		s.barrier()
		return
	}
	l := c.listen(1)
	for i := range 2 * numbers {
		if i == numbers {
			s.barrier()
		}
		l.tell(0, i)
	}
	if s.Rank() == 1 {
		l.wait()
	}
	s.barrier()
}

// Each rank answers inside of Take. If that made a transport call Take inside of another call of it,
// the stack would grow with each answer.
func listenAndAnswer(s *side) {
	const rounds = 100 // among processes each message may wait for a timer, and for a core
	c := s.dup(1)
	l := c.listener(rounds)
	l.onMessage = func(number int) {
		if s.Rank() == 0 {
			number++
		}
		if number < rounds {
			l.tell(s.next(), number)
		}
	}
	c.Listen(l)
	s.barrier()
	if s.Rank() == 0 {
		l.tell(s.next(), 0)
	}
	l.wait()
	s.barrier()
}

func listenAcrossAdvance(s *side) {
	c := s.dup(1)
	l := c.listen(3)
	l.tell(s.next(), 0)
	s.barrier()
	c.Advance(0, transport.ErrCancelled)
	l.tell(s.next(), 1)
	s.barrier()
	c.Revoke(transport.ErrCancelled)
	l.tell(s.next(), 2)
	l.wait()
	s.barrier()
}

func listenAndClose(s *side) {
	c := s.dup(1)
	l := c.listen(1)
	l.tell(s.next(), 0)
	l.wait()
	s.barrier()
	if s.Rank() == 0 {
		c.close()
	}
	s.barrier()
	if s.Rank() == s.Size()-1 {
		l.tell(0, 1)
	}
	s.barrier()
	if s.Rank() == 0 {
		require.Equal(s, 1, l.come)
	}
}
