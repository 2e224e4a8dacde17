package blackchannel

import (
	"sync"

	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// Channel is one rank's side of the black channel of a communicator: a Machine
// driven by what others send it on a duplicate of it.
type Channel struct {
	comm   transport.Comm
	client errchan.Client

	mu      sync.Mutex
	machine Machine
	todo    []Output
	asked   bool // Next will be, until it has nothing
	// verdict is the last one, encoded: to be handed on as it came.
	verdict struct {
		round uint64
		bytes []byte
	}
}

var _ errchan.Channel = (*Channel)(nil)

// New returns a channel over comm, a duplicate that nobody else uses. The client
// is told of nothing before Listen.
func New(comm transport.Comm, client errchan.Client) *Channel {
	ch := &Channel{comm: comm, client: client, asked: true} // by Listen
	ch.machine.init(comm.Rank(), comm.Size())
	return ch
}

// Listen begins to take messages.
func (ch *Channel) Listen() { ch.comm.Listen(ch) }

// Raise makes every rank get a verdict with a report of this rank. Nothing is settled
// here but errors.
func (ch *Channel) Raise(data []byte, corrupt bool, _ []errchan.Settled) {
	ch.do(func(m *Machine) { m.Raise(data, corrupt) })
}

// Join agrees to end the round, if it is the open one.
func (ch *Channel) Join(round uint64, _ []errchan.Settled) {
	ch.do(func(m *Machine) {
		if m.round == round {
			m.Join()
		}
	})
}

// Waiting says what the open round waits for.
func (ch *Channel) Waiting() string {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	return ch.machine.Waiting()
}

// Close ends the listening.
func (ch *Channel) Close() error { return ch.comm.Close() }

// Died does nothing: this backend does not survive it.
func (ch *Channel) Died(int) {}

// Take takes a message.
func (ch *Channel) Take(from int, payload []byte) {
	ch.do(func(m *Machine) {
		msg, err := decodeShared(payload, m.size)
		if err == nil {
			if msg.Kind == Verdict {
				ch.verdict.round, ch.verdict.bytes = msg.Round, payload
			}
			err = m.Step(from, msg)
		}
		if err != nil {
			// A peer runs another program, or memory is damaged: no round can be
			// trusted to end, so none is begun but the last.
			m.Raise(nil, true)
		}
	})
}

// do feeds the machine, and has what it wants carried out.
func (ch *Channel) do(feed func(*Machine)) {
	ch.mu.Lock()
	feed(&ch.machine)
	ch.todo = append(ch.todo, ch.machine.Output()...)
	poke := !ch.asked && len(ch.todo) > 0
	ch.asked = ch.asked || poke
	ch.mu.Unlock()
	if poke {
		ch.comm.Poke()
	}
}

// Next carries out what the machine wants, in order, until that is a message: it
// returns that.
func (ch *Channel) Next() (to int, payload []byte, ok bool) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	for len(ch.todo) > 0 {
		o := ch.todo[0]
		if ch.todo = ch.todo[1:]; len(ch.todo) == 0 {
			ch.todo = nil
		}
		if o.Message != nil {
			return o.To, ch.encode(o.Message), true
		}
		ch.mu.Unlock()
		if o.Noticed != nil {
			ch.client.Noticed(o.Noticed.Round, o.Noticed.By, o.Noticed.Corrupt)
		} else {
			ch.client.Resolved(o.Resolved)
		}
		ch.mu.Lock()
	}
	ch.asked = false
	return 0, nil, false
}

// encode returns msg as bytes; those of a verdict are made once. The caller holds
// mu.
func (ch *Channel) encode(msg *Message) []byte {
	v := &ch.verdict
	if msg.Kind == Verdict && msg.Round == v.round && v.bytes != nil {
		return v.bytes
	}
	b := Encode(msg)
	if msg.Kind == Verdict {
		v.round, v.bytes = msg.Round, b
	}
	return b
}
