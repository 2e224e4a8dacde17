package blackchannel

import (
	"sync"

	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// A Channel is one rank's side of the black channel of a communicator. It drives a
// Machine by the messages on a duplicate of the communicator.
type Channel struct {
	comm   transport.Messenger
	client errchan.Client

	// mu protects the fields below. The channels of a communicator and its duplicates share one
	// lock, because their machines call each other. It is not held while a client or comm is
	// called.
	mu      *sync.Mutex
	own     sync.Mutex // mu points to it, except in duplicates
	machine Machine
	asked   bool // the transport will call Next until it returns nothing
	closed  bool // comm is closed
	// verdict is the last verdict, encoded, to be passed on as it was received.
	verdict struct {
		round uint64
		bytes []byte
	}
}

var _ errchan.Channel = (*Channel)(nil)

// New returns a channel over comm, a duplicate that nothing else uses. The client is told
// nothing before Listen.
//
// Some members may have made a duplicate (MPI_Comm_dup) while others have not yet. The
// channel of such a communicator has a parent: the channel of the communicator it was
// duplicated from, which has the same ranks and carries the notices of its first round.
// Its id is the same at all members, and unique among the duplicates of that parent.
// Any other channel has a nil parent.
func New(comm transport.Messenger, id uint64, parent *Channel, client errchan.Client) *Channel {
	ch := &Channel{comm: comm, client: client, asked: true} // by Listen
	ch.mu = &ch.own
	ch.machine.init(comm.Rank(), comm.Size())
	ch.machine.channel = ch
	if parent != nil {
		ch.mu = parent.mu
		ch.do(func(m *Machine) { m.duplicates(&parent.machine, id) })
	}
	return ch
}

// Listen begins to take messages.
func (ch *Channel) Listen() { ch.comm.Listen(ch) }

// Raise gives a report of this rank to the next verdict. This backend has no
// agreements, so nothing is settled.
func (ch *Channel) Raise(data []byte, corrupt bool, _ []errchan.Settled) {
	ch.do(func(m *Machine) { m.Raise(data, corrupt) })
}

// Join joins the round, if it is the open one.
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

// Close ends the channel. It still carries notices while a duplicate needs it.
func (ch *Channel) Close() error {
	ch.do((*Machine).Close)
	return nil
}

// Died does nothing: this backend does not survive deaths.
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
			// A peer runs another program, or memory is damaged. No round can be trusted
			// to end as it should, so this one is the last.
			m.Raise(nil, true)
		}
	})
}

// do feeds the machine, and wakes the transport if there are outputs.
func (ch *Channel) do(feed func(*Machine)) {
	ch.mu.Lock()
	feed(&ch.machine)
	var some [2]*Channel
	poke, over := ch.collect(some[:0], nil)
	ch.mu.Unlock()
	for _, c := range poke {
		c.comm.Poke()
	}
	for _, c := range over {
		_ = c.comm.Close()
	}
}

// collect looks at this channel and at those whose machines its machine has woken. It adds the
// channels with outputs to poke, and the channels that are over to over. The caller holds mu.
func (ch *Channel) collect(poke, over []*Channel) (_, _ []*Channel) {
	if !ch.asked && !ch.machine.Idle() {
		ch.asked = true
		poke = append(poke, ch)
	}
	if ch.machine.Over() && !ch.closed {
		ch.closed, ch.asked = true, true // Next will not be called any more
		over = append(over, ch)
	}
	for _, m := range ch.machine.Woken() {
		poke, over = m.channel.collect(poke, over)
	}
	return poke, over
}

// Next carries out the machine's outputs in order, up to the next message, and returns
// that message.
func (ch *Channel) Next() (to int, payload []byte, ok bool) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	for {
		o, ok := ch.machine.Next()
		switch {
		case !ok:
			ch.asked = ch.closed
			return 0, nil, false
		case o.Message != nil:
			return o.To, ch.encode(o.Message), true
		}
		ch.tell(o)
	}
}

// tell tells the client. The caller holds mu, which is free meanwhile.
func (ch *Channel) tell(o Output) {
	ch.mu.Unlock()
	defer ch.mu.Lock()
	if o.Noticed != nil {
		ch.client.Noticed(o.Noticed.Round, o.Noticed.By, o.Noticed.Corrupt)
	} else {
		ch.client.Resolved(o.Resolved)
	}
}

// encode returns msg as bytes. A verdict is encoded once. The caller holds mu.
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
