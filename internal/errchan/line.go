package errchan

import (
	"sync"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// A Line carries the messages of an error channel: a duplicate communicator, on
// which a receive from anybody is always pending.
type Line struct {
	comm transport.Comm
	take func(from int, payload []byte)
	recv transport.Request
}

// Listen begins to receive: take is told of each message, one at a time.
func (l *Line) Listen(comm transport.Comm, take func(from int, payload []byte)) {
	l.comm, l.take = comm, take
	l.listen()
}

func (l *Line) listen() {
	l.recv = transport.Request{Peer: transport.AnySource, Tag: 0, Take: true, Epoch: l.comm.Epoch(), Done: l}
	l.comm.Irecv(&l.recv)
}

// Completed takes the message that the pending receive got, and posts the next.
func (l *Line) Completed(r *transport.Request) {
	if r.Err == nil { // else it was cancelled, or the process has died
		l.take(r.Status.Source, r.Buf)
		l.listen()
	}
}

// Send sends bytes that nobody will ever change again.
func (l *Line) Send(to int, payload []byte, mode transport.Mode) {
	r := requests.Get().(*transport.Request)
	*r = transport.Request{Buf: payload, Peer: to, Mode: mode | transport.Shared, Epoch: l.comm.Epoch(), Done: sent{}}
	l.comm.Isend(r)
}

// Close ends the pending receive.
func (l *Line) Close() error {
	l.comm.Cancel(&l.recv)
	return l.comm.Close()
}

// requests are for messages on their way.
var requests = sync.Pool{New: func() any { return new(transport.Request) }}

// sent gives a request back.
type sent struct{}

func (sent) Completed(r *transport.Request) { requests.Put(r) }
