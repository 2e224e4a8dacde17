package fault

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// Wrap returns a transport that carries out the plan for one rank, given the rank's side of the
// world. If the plan does nothing to the rank and does not count, or ranks can't die
// (Features.Deaths), it returns world itself. A Plan wraps the ranks of one run. No rank dies
// before its side of the world has an error channel.
//
// The wrapper sends all messages by Isend, whose requests say what they are for.
func (p *Plan) Wrap(world transport.Comm) transport.Comm {
	v := &victim{plan: p, rank: world.Rank(), calls: make(map[call]int), counts: make(map[moment]int)}
	for i, s := range p.statements {
		if m, ok := s.of(world.Rank(), world.Size()); ok {
			v.fates = append(v.fates, fate{m, s.Deed, i})
		}
	}
	if len(v.fates) == 0 && !p.Counting || !world.Features().Deaths && p.Carry == nil {
		return world
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.victims == nil {
		p.victims = make(map[int]*victim)
	}
	p.victims[v.rank] = v
	return &comm{world, v}
}

// victim is the state of a rank that is to die, which all its communicators share.
type victim struct {
	plan  *Plan
	rank  int
	began atomic.Bool // the world is made, so the program may begin
	dead  atomic.Bool

	mu     sync.Mutex
	fates  []fate         // still to come
	counts map[moment]int // of operations, messages and calls so far, by kind and name; of steps, also by number
	calls  map[call]int   // the number of each call of a collective
}

// A fate is what happens to the rank, when, and by which statement.
type fate struct {
	when      moment
	what      Deed
	statement int
}

// call identifies a call of a collective.
type call struct {
	comm  *comm
	epoch transport.Epoch
	tag   int
}

// comm is the victim's side of a communicator.
type comm struct {
	transport.Comm
	victim *victim
}

var _ transport.Comm = (*comm)(nil)

// TrySend leaves the message to Isend, whose request says what it is for.
func (c *comm) TrySend(int, int, transport.Epoch, signature.Word, []byte) bool { return false }

func (c *comm) Isend(r *transport.Request) { c.begin(r, c.Comm.Isend) }
func (c *comm) Irecv(r *transport.Request) { c.begin(r, c.Comm.Irecv) }
func (c *comm) TryRecv(r *transport.Request) (received bool) {
	c.begin(r, func(r *transport.Request) { received = c.Comm.TryRecv(r) })
	return received
}
func (c *comm) Probe(r *transport.Request)  { c.begin(r, c.Comm.Probe) }
func (c *comm) Mprobe(r *transport.Request) { c.begin(r, c.Comm.Mprobe) }
func (c *comm) Mrecv(r *transport.Request)  { c.begin(r, c.Comm.Mrecv) }

// Meet has two steps: the rank may die before it comes, and after.
func (c *comm) Meet(r *transport.Request) (ended bool) {
	name, _ := r.Done.(transport.Stepper).Step()
	v, call := c.victim, 0
	c.reach(func() []moment {
		call = v.next(moment{kind: step, name: name}).n
		return []moment{v.next(moment{kind: operation}), v.step(name, 1, call)}
	})
	ended = c.Comm.(transport.Board).Meet(r)
	c.reach(func() []moment { return []moment{v.next(moment{kind: operation}), v.step(name, 2, call)} })
	return ended
}

// begin begins an operation, unless the rank dies instead.
func (c *comm) begin(r *transport.Request, how func(*transport.Request)) {
	c.reach(func() []moment {
		v := c.victim
		now := []moment{v.next(moment{kind: operation})}
		if s, ok := r.Done.(transport.Stepper); ok {
			name, number := s.Step()
			id := call{c, r.Epoch, r.Tag}
			if v.calls[id] == 0 {
				v.calls[id] = v.next(moment{kind: step, name: name}).n
			}
			now = append(now, v.step(name, number, v.calls[id]))
		}
		return now
	})
	how(r)
}

func (c *comm) Listen(l transport.Listener) { c.Comm.Listen(&listener{l, c}) }

// A listener may die when it is about to send a message.
type listener struct {
	transport.Listener
	comm *comm
}

func (l *listener) Next() (to int, payload []byte, ok bool) {
	to, payload, ok = l.Listener.Next()
	if ok {
		v := l.comm.victim
		l.comm.reach(func() []moment {
			return []moment{v.next(moment{kind: message, name: l.Purpose(payload)})}
		})
	}
	return to, payload, ok
}

// Sub wraps the communicator that it makes.
func (c *comm) Sub(name transport.Name, members []int) (transport.Comm, error) {
	made, err := c.Comm.Sub(name, members)
	c.victim.began.Store(true)
	if err != nil {
		return nil, err
	}
	return &comm{made, c.victim}, nil
}

// reach kills the rank if one of its moments is now. The transport then ends what the rank was
// about to begin with ErrDied.
func (c *comm) reach(now func() []moment) {
	v := c.victim
	if v.dead.Load() || !v.began.Load() {
		return
	}
	v.mu.Lock()
	var come []fate
	moments := now()
	v.fates = slices.DeleteFunc(v.fates, func(f fate) bool {
		comes := slices.ContainsFunc(moments, f.when.comes)
		if comes {
			come = append(come, f)
		}
		return comes
	})
	v.mu.Unlock()
	for _, f := range come {
		switch {
		case v.plan.Carry != nil:
			v.plan.Note(f.statement, v.rank)
			v.plan.Carry(f.statement, f.what)
		case !v.dead.Swap(true):
			v.plan.Note(f.statement, v.rank)
			c.Die()
		}
	}
}

// next counts a moment, and returns it with its number. The caller holds mu.
func (v *victim) next(m moment) moment {
	v.counts[m]++
	m.n = v.counts[m]
	return m
}

// step counts a step of a call, and returns its moment. The caller holds mu.
func (v *victim) step(name string, n, call int) moment {
	m := moment{kind: step, name: name, n: n}
	v.counts[m]++
	m.call = call
	return m
}
