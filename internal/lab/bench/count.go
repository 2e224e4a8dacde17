package main

import (
	"sync/atomic"

	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// counts contains the number of messages that each rank has sent, on all its communicators.
type counts []atomic.Int64

func (n counts) wrap(c transport.Comm) transport.Comm { return &counting{c, &n[c.Rank()]} }

func (n counts) totalAndMost() (total, most int64) {
	for i := range n {
		v := n[i].Load()
		total, most = total+v, max(most, v)
	}
	return total, most
}

type counting struct {
	transport.Comm
	sent *atomic.Int64
}

func (c *counting) Isend(r *transport.Request) {
	c.sent.Add(1)
	c.Comm.Isend(r)
}

func (c *counting) Listen(l transport.Listener) { c.Comm.Listen(&listener{l, c.sent}) }

type listener struct {
	transport.Listener
	sent *atomic.Int64
}

func (l *listener) Next() (to int, payload []byte, ok bool) {
	to, payload, ok = l.Listener.Next()
	if ok {
		l.sent.Add(1)
	}
	return to, payload, ok
}

func (c *counting) TrySend(dest, tag int, e transport.Epoch, w signature.Word, buf []byte) bool {
	sent := c.Comm.TrySend(dest, tag, e, w, buf)
	if sent {
		c.sent.Add(1)
	}
	return sent
}

func (c *counting) Sub(name transport.Name, members []int) (transport.Comm, error) {
	sub, err := c.Comm.Sub(name, members)
	if err != nil {
		return nil, err
	}
	return &counting{sub, c.sent}, nil
}
