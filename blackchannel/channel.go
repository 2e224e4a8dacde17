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

	carrier *Channel // the channel that sends this one's messages: itself, or see copies.go
	machine *Machine

	// The following fields are of carriers. mu protects them and the machines. It is not held while
	// a client or comm is called.
	mu     sync.Mutex
	asked  bool // the transport will call Next until it returns nothing
	closed bool // comm is closed, or about to be
}

var _ errchan.Channel = (*Channel)(nil)

// New returns a channel over comm, which nothing else uses. The client is told nothing before
// Listen.
//
// Some members may have made a duplicate (MPI_Comm_dup) while others have not yet. The
// channel of such a communicator has a parent: the channel of the communicator that it was
// duplicated from, which has the same ranks. Its id is not 0, is the same at all members, and
// unique among all duplicates with the same carrier. Any other channel has a nil parent.
func New(comm transport.Messenger, id uint64, parent *Channel, client errchan.Client) *Channel {
	ch := &Channel{comm: comm, client: client}
	if parent == nil {
		ch.carrier, ch.machine, ch.asked = ch, NewMachine(comm.Rank(), comm.Size()), true // by Listen
		ch.machine.channel = ch
		return ch
	}
	ch.carrier = parent.carrier
	ch.carrier.mu.Lock()
	defer ch.carrier.mu.Unlock()
	ch.machine = parent.machine.Dup(id)
	ch.machine.channel = ch
	return ch
}

// Listen begins to take messages.
func (ch *Channel) Listen() {
	ch.comm.Listen(ch)
	ch.do((*Machine).Listen)
}

// Raise gives a report of this rank to the next verdict. This backend has no
// agreements, so nothing is settled.
func (ch *Channel) Raise(data []byte, corrupt bool, _ []errchan.Settled) {
	ch.do(func(m *Machine) { m.Raise(data, corrupt) })
}

func (ch *Channel) Join(round uint64, _ []errchan.Settled) {
	ch.do(func(m *Machine) {
		// The client decides without mu. By now the verdict may have come, and the machine may be
		// in the next round, to which the client has not consented.
		if m.round == round {
			m.Join()
		}
	})
}

// Ask floods a request to stop.
func (ch *Channel) Ask(request []byte) { ch.do(func(m *Machine) { m.Ask(request) }) }

// Release says that this rank's program has closed the communicator.
func (ch *Channel) Release() { ch.do((*Machine).Release) }

// Leave says that this rank's program has ended, so it uses the communicator no more.
func (ch *Channel) Leave() { ch.do((*Machine).Release) }

func (ch *Channel) Waiting() string {
	ch.carrier.mu.Lock()
	defer ch.carrier.mu.Unlock()
	return ch.machine.Waiting()
}

// Close ends the channel. A carrier's duplicates have been closed before.
func (ch *Channel) Close() error {
	ch.mu.Lock()
	ch.asked, ch.closed = true, true // Next is not called after Close
	ch.mu.Unlock()
	return ch.comm.Close()
}

// Died does nothing: this backend does not survive deaths.
func (ch *Channel) Died(int) {}

// Take takes a message.
func (ch *Channel) Take(from int, payload []byte) {
	ch.do(func(m *Machine) {
		// The message is unchecked: decode checks the encoding and the ranks in it, and Step
		// that a neighbour sends it in this state.
		msg, err := decodeShared(payload, m.size)
		if err == nil {
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
	c := ch.carrier
	c.mu.Lock()
	feed(ch.machine)
	poke := !c.asked && !c.machine.out.Empty()
	c.asked = c.asked || poke
	// Poke may call Next at once, on this goroutine, and that takes mu.
	c.mu.Unlock()
	if poke {
		c.comm.Poke()
	}
}

// Next carries out the outputs of all machines in order, up to the next message, and returns
// that message. A duplicate has none, because its carrier returns them.
func (ch *Channel) Next() (to int, payload []byte, ok bool) {
	if ch != ch.carrier {
		return 0, nil, false
	}
	ch.mu.Lock()
	defer ch.mu.Unlock()
	for {
		o, ok := ch.machine.Next()
		switch {
		// asked is reset with the same hold of mu in which there was no output. So an output that
		// comes later makes do poke again. After Close it stays set, and nobody pokes.
		case !ok:
			ch.asked = ch.closed
			return 0, nil, false
		case o.Message != nil:
			if o.Message.encoded == nil { // it is this rank's own
				o.Message.encoded = Encode(o.Message)
			}
			return o.To, o.Message.encoded, true
		}
		ch.tell(o)
	}
}

// tell tells the client of the output's machine. The caller holds mu, which is free meanwhile.
func (ch *Channel) tell(o Output) {
	client := o.Of.channel.client
	// The order stays although mu is free: Next is called by one goroutine at a time.
	ch.mu.Unlock()
	defer ch.mu.Lock()
	switch {
	case o.Noticed != nil:
		client.Noticed(o.Noticed.Round, o.Noticed.By, o.Noticed.Corrupt)
	case o.Resolved != nil:
		client.Resolved(o.Resolved)
	case o.Released:
		client.Released()
	default:
		client.Asked(o.Asked)
	}
}
