package ulfmbackend

import (
	"cmp"
	"slices"
	"sync"

	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// A Channel is one rank's side of the error channel of a communicator. It drives a
// Machine by the messages and deaths on a duplicate of the communicator.
type Channel struct {
	// mu guards the following fields. It is not held while the client, comm or lib is called. See
	// Machine for their order.
	mu       sync.Mutex
	asked    bool            // the transport will call Next until it returns nothing
	closing  bool            // the program has closed the communicator; the machine is told once proposed is empty
	alone    bool            // other ranks may not have closed it
	proposed []proposed      // the agreements whose ends this rank has not been told
	reserved [streams]uint64 // how many agreements of each stream are reserved in this epoch
	machine  Machine
	over     error // why the program creates no more communicators; nil: it may
	finished error // why the program agrees on nothing more; nil: it may

	comm   transport.Messenger
	lib    transport.Library // nil: none
	client errchan.ULFMClient
}

// proposed is an agreement to which this rank has proposed, and of whose end done has not been
// told.
type proposed struct {
	id    errchan.Agreement
	done  func(*errchan.Decision, error)
	cause error // the error that has ended the agreement, or its epoch while it is open; nil: none has
}

var _ errchan.ULFM = (*Channel)(nil)

// New returns the error channel of a communicator in epoch e. It uses comm, and nothing else
// may use it. The id identifies the communicator in its family. The client is told nothing
// before Listen.
func New(comm transport.Messenger, id uint64, e transport.Epoch, client errchan.ULFMClient) *Channel {
	machine := *NewMachine(comm.Rank(), comm.Size(), id, e)
	return &Channel{comm: comm, client: client, machine: machine, asked: true} // by Listen
}

// Over makes the channel revoke and agree by a library. It is called before Listen.
func (ch *Channel) Over(lib transport.Library) {
	ch.lib = lib
	ch.machine.Native()
}

// Listen begins to take messages and deaths.
func (ch *Channel) Listen() {
	ch.comm.Listen(ch)
	if ch.lib != nil {
		ch.lib.Listen(ch)
	}
}

// Raise gives a report of this rank to the next verdict.
func (ch *Channel) Raise(data []byte, corrupt bool, settled []errchan.Settled) {
	ch.do(func(m *Machine) { m.Raise(data, corrupt, settled) })
}

// Unwind is Raise with corrupt, of a rank that is about to Leave.
func (ch *Channel) Unwind(data []byte, settled []errchan.Settled) {
	ch.do(func(m *Machine) { m.Unwind(data, settled) })
}

// Join joins the round, if it is the open one.
func (ch *Channel) Join(round uint64, settled []errchan.Settled) {
	ch.do(func(m *Machine) {
		if m.stream(Errors).id.Seq == round {
			m.Join(settled)
		}
	})
}

// Died notes a death. If it is of this process itself, its proposals end, now and later, and
// the other ranks learn nothing from it.
func (ch *Channel) Died(rank int) {
	if rank != ch.machine.rank {
		ch.do(func(m *Machine) { m.Died(rank) })
		return
	}
	ch.client.Died(rank)
	ch.end(func(m *Machine) {
		ch.finished = transport.ErrDied
		m.Fall()
	}, func(p *proposed) bool {
		p.cause = transport.ErrDied
		return true
	})
}

// Lose makes every rank get a final verdict, because this rank needs one of the dead.
func (ch *Channel) Lose(dead []int) { ch.do(func(m *Machine) { m.Lose(dead) }) }

// Leave says that this rank's program has ended.
func (ch *Channel) Leave() { ch.do((*Machine).Leave) }

// Ask floods a request to stop.
func (ch *Channel) Ask(request []byte) { ch.do(func(m *Machine) { m.Ask(request) }) }

// Revoke tells every rank that the communicator is revoked.
func (ch *Channel) Revoke() { ch.do((*Machine).Revoke) }

// Reserve takes this rank's place in the next agreement of an epoch. If the epoch is over,
// Propose says so.
func (ch *Channel) Reserve(e transport.Epoch, call errchan.Calls) errchan.Agreement {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	id := errchan.Agreement{Epoch: e, Creates: call.Creates()}
	if e == ch.machine.epoch {
		next := &ch.reserved[streamOf(id)]
		id.Seq = *next
		*next++
	}
	return id
}

// Abandon ends this rank's proposals to create communicators, now and later.
func (ch *Channel) Abandon(cause error) {
	ch.end(func(m *Machine) {
		ch.over = cause
		m.Abandon()
	}, func(p *proposed) bool {
		if p.id.Creates {
			p.cause = cmp.Or(p.cause, cause)
		}
		return p.id.Creates
	})
}

// Finish ends this rank's proposals, now and later.
func (ch *Channel) Finish(cause error) {
	ch.end(func(*Machine) { ch.finished = cmp.Or(ch.finished, cause) }, func(p *proposed) bool {
		p.cause = cmp.Or(p.cause, cause)
		return true
	})
}

// Propose makes this rank's proposal to an agreement.
func (ch *Channel) Propose(id errchan.Agreement, p errchan.Proposal, done func(*errchan.Decision, error)) {
	var over error
	ch.do(func(m *Machine) {
		if over = ch.refusal(id); over == nil {
			ch.proposed = append(ch.proposed, proposed{id: id, done: done})
			m.Propose(id, Value{Calls: p.Call, Flag: p.Flag, Acked: p.Acked, Note: p.Note})
		}
	})
	if over != nil {
		done(nil, over)
	}
}

// refusal returns why this rank can't make a proposal, or nil. The caller holds mu.
func (ch *Channel) refusal(id errchan.Agreement) error {
	switch {
	case ch.finished != nil:
		return ch.finished
	case ch.closing:
		return errchan.ErrClosed
	case id.Epoch != ch.machine.epoch:
		return errchan.ErrOver
	case id.Creates:
		return ch.over
	}
	return nil
}

// Release says that this rank's program has closed the communicator.
func (ch *Channel) Release() {
	ch.do(func(*Machine) {
		ch.closing = true
		ch.closeIfIdle()
	})
}

// Part says so too, and that other ranks may not have closed it.
func (ch *Channel) Part() {
	ch.do(func(*Machine) {
		ch.alone = true
		ch.closeIfIdle()
	})
}

// closeIfIdle tells the machine that the program has closed the communicator, if the program
// waits for no agreement there. The other ranks keep their sides until then. The caller
// holds mu.
func (ch *Channel) closeIfIdle() {
	if len(ch.proposed) > 0 {
		return
	}
	if ch.alone {
		ch.machine.Leave()
	}
	if ch.closing {
		ch.machine.Close()
	}
}

// Freeze stops decisions here until Advance allows them, and returns the earlier ones.
func (ch *Channel) Freeze() []errchan.Settled {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	return ch.machine.Freeze()
}

// Complete ends the proposals to agreements whose decisions are in a verdict.
func (ch *Channel) Complete(settled []errchan.Settled) {
	ch.end(func(m *Machine) { m.Complete(settled) }, func(p *proposed) bool {
		d, _ := ch.machine.End(p.id)
		return d != nil
	})
}

// Advance begins an epoch.
func (ch *Channel) Advance(generation int, cause error, frozen, lost bool) {
	ch.end(func(m *Machine) {
		ch.reserved = [streams]uint64{}
		m.Advance(generation, m.epoch.Next(generation), frozen, lost)
	}, func(p *proposed) bool {
		p.cause = cmp.Or(p.cause, cause)
		return !ch.machine.IsOpen(p.id)
	})
}

// end feeds the machine, and calls done for the proposals that are over.
func (ch *Channel) end(feed func(*Machine), isOver func(*proposed) bool) {
	type ended struct {
		proposed
		d *errchan.Decision
	}
	var over []ended
	ch.do(func(m *Machine) {
		feed(m)
		var kept []proposed
		for _, p := range ch.proposed {
			if !isOver(&p) {
				kept = append(kept, p)
				continue
			}
			d, _ := m.End(p.id)
			over = append(over, ended{p, d})
		}
		ch.proposed = kept
		ch.closeIfIdle()
	})
	for _, p := range over {
		if p.d != nil {
			p.done(p.d, nil)
		} else {
			p.done(nil, p.cause)
		}
	}
}

// Waiting says what the open round and the agreements wait for.
func (ch *Channel) Waiting() string {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	return ch.machine.Waiting()
}

// Close ends the channel.
func (ch *Channel) Close() error {
	if ch.lib != nil {
		ch.lib.Close()
	}
	return ch.comm.Close()
}

// Take takes a message.
func (ch *Channel) Take(from int, payload []byte) {
	ch.do(func(m *Machine) {
		msg, err := decodeShared(payload, m.size)
		if err == nil {
			err = m.Step(from, msg)
		}
		if err != nil {
			// A peer runs another program, or memory is damaged. No round can be trusted
			// to end as it should, so this one is the last.
			m.Raise(nil, true, nil)
		}
	})
}

// do feeds the machine, and wakes the transport if there are outputs.
func (ch *Channel) do(feed func(*Machine)) {
	ch.mu.Lock()
	feed(&ch.machine)
	poke := !ch.asked && !ch.machine.Idle()
	ch.asked = ch.asked || poke
	ch.mu.Unlock()
	if poke {
		ch.comm.Poke()
	}
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
			ch.asked = false
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

// tell tells the client. The caller holds mu, which is free meanwhile.
func (ch *Channel) tell(o Output) {
	var agreed func(*errchan.Decision, error)
	if o.Agreed != nil {
		if i := slices.IndexFunc(ch.proposed, func(p proposed) bool { return p.id == o.Agreed.ID }); i >= 0 {
			agreed = ch.proposed[i].done
			ch.proposed = slices.Delete(ch.proposed, i, i+1)
		}
		ch.closeIfIdle()
	}
	ch.mu.Unlock()
	defer ch.mu.Lock()
	switch {
	case o.Noticed != nil:
		ch.client.Noticed(o.Noticed.Round, o.Noticed.By, o.Noticed.Corrupt)
	case o.Resolved != nil:
		ch.do((*Machine).Told) // before: other goroutines of the rank may be told, and raise, at once
		ch.client.Resolved(o.Resolved)
	case o.Revoked != nil:
		ch.client.Revoked(o.Revoked.Rank)
	case o.Died != nil:
		ch.client.Died(o.Died.Rank)
	case o.Asked != nil:
		ch.client.Asked(o.Asked)
	case o.Revoke:
		ch.lib.Revoke()
	case o.Vote != nil:
		ch.lib.Agree(o.Vote)
	case o.Released:
		ch.client.Released()
	case agreed != nil:
		agreed(o.Agreed.Decision, nil)
	}
}

// Revoked says that the library has brought a revoke.
func (ch *Channel) Revoked() { ch.do(func(m *Machine) { m.Revoked(m.rank) }) }

// Agreed takes the result of the library's agreement.
func (ch *Channel) Agreed(words []uint32) { ch.do(func(m *Machine) { m.Voted(words) }) }
