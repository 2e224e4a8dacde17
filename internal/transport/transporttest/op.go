package transporttest

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// limit is how long an operation may take before a test gives up.
const limit = time.Minute

// An op is a request, and the means to wait for it.
type op struct {
	transport.Request
	s     *side
	ended atomic.Int32
	done  chan struct{}

	awaited atomic.Bool // the program waits for it
}

// Awaited is called by the transport.
func (o *op) Awaited() bool { return o.awaited.Load() }

// Completed is called by the transport.
func (o *op) Completed(r *transport.Request) {
	if o.ended.Add(1) > 1 || r != &o.Request {
		o.s.endedTwice.Add(1)
		return
	}
	close(o.done)
}

// op returns a request of s, not yet started.
func (s *side) op(r transport.Request) *op {
	o := &op{Request: r, s: s, done: make(chan struct{})}
	o.Epoch, o.Done = s.epoch(), o
	return o
}

func (s *side) isend(r transport.Request) *op {
	o := s.op(r)
	if !o.start(transport.Sending) {
		s.Isend(&o.Request)
	}
	return o
}

func (s *side) irecv(r transport.Request) *op {
	o := s.op(r)
	o.Light = s.begun.Add(1)%4 < 2 // Completed starts nothing
	if s.begun.Load()%5 < 2 {
		o.Soon = yielder{}
	}
	switch {
	case o.start(transport.Receiving):
	case s.begun.Load()%3 == 0:
		s.Irecv(&o.Request)
	case s.TryRecv(&o.Request):
		require.NoError(s, o.Err)
		o.Completed(&o.Request)
	}
	return o
}

type yielder struct{}

func (yielder) Yield() { runtime.Gosched() }

// start begins every second request by Start, where the transport has it, and says whether it did.
func (o *op) start(k transport.Kind) (did bool) {
	starter, ok := o.s.Comm.(transport.Starter)
	if !ok || o.s.begun.Add(1)%2 == 0 {
		return false
	}
	o.Kind = k
	ended := starter.Start(unsafe.Slice(&o.Request, 1))
	require.LessOrEqual(o.s, ended, 1)
	if ended == 1 {
		require.True(o.s, o.Ended)
		o.Completed(&o.Request)
	}
	return true
}

func (s *side) send(to, tag int, buf []byte) *op {
	return s.isend(transport.Request{Peer: to, Tag: tag, Buf: buf})
}

func (s *side) ssend(to, tag int, buf []byte) *op {
	return s.isend(transport.Request{Peer: to, Tag: tag, Buf: buf, Mode: transport.Synchronous})
}

// trySend calls TrySend and, if that declines, starts a send. If the buffer may be reused at once,
// trySend overwrites it.
func (s *side) trySend(to, tag int, buf []byte) *op {
	if !s.TrySend(to, tag, s.epoch(), 0, buf) {
		return s.send(to, tag, buf)
	}
	clear(buf)
	o := s.op(transport.Request{Peer: to, Tag: tag})
	o.Completed(&o.Request)
	return o
}

func (s *side) recv(from, tag int, buf []byte) *op {
	return s.irecv(transport.Request{Peer: from, Tag: tag, Buf: buf})
}

func (s *side) probe(from, tag int) *op {
	o := s.op(transport.Request{Peer: from, Tag: tag})
	s.Probe(&o.Request)
	return o
}

func (o *op) String() string {
	return fmt.Sprintf("%v of %d bytes, peer %d, tag %d, epoch %#x", o.Kind, len(o.Buf), o.Peer, o.Tag, uint64(o.Epoch))
}

// isDone reports whether the request has ended.
func (o *op) isDone() bool {
	select {
	case <-o.done:
		return true
	default:
		return false
	}
}

// pending checks that the request has not ended. It may be called only if the request cannot have
// ended at any speed: before the messages that end it are sent, or the receives posted.
func (o *op) pending() {
	o.s.Helper()
	require.False(o.s, o.isDone(), "%v ended with %v; it has to wait", o, o.Err)
}

// wait returns the request's error once it has ended.
func (o *op) wait() error {
	o.s.Helper()
	select {
	case <-o.done:
		return o.Err
	default:
	}
	tooLong := time.NewTimer(limit)
	defer tooLong.Stop()
	select {
	case <-o.done:
	case <-tooLong.C:
		require.Fail(o.s, "a request did not end", "%v, after %v", o, limit)
	}
	return o.Err
}

// ok waits and checks that there is no error.
func (o *op) ok() *op {
	o.s.Helper()
	require.NoError(o.s, o.wait(), "%v", o)
	return o
}

// fails waits and checks that the request ends with this error.
func (o *op) fails(err error) {
	o.s.Helper()
	require.Equal(o.s, err, o.wait(), "%v", o)
}

// found waits and checks which message was received or probed.
func (o *op) found(source, tag, n int) {
	o.s.Helper()
	require.Equal(o.s, transport.Status{Source: source, Tag: tag, Bytes: n}, o.ok().Status, "%v", o)
}

// got waits and checks which message was received, and its contents.
func (o *op) got(source, tag int, want []byte) {
	o.s.Helper()
	o.found(source, tag, len(want))
	o.s.same(want, o.Buf[:len(want)], "message from %d with tag %d", source, tag)
}

func allOK(ops []*op) {
	for _, o := range ops {
		o.s.Helper()
		o.ok()
	}
}
