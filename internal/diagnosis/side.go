package diagnosis

import (
	"context"
	"sync"
	"time"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// A Side is the messenger of one rank's error channel. It also carries the messages of a Machine.
type Side struct {
	transport.Messenger
	rank    Rank
	channel transport.Listener

	// Ranks may be many and questions are few, so all that these need is made for the first.
	mu      sync.Mutex    // protects the fields below
	dead    []int         // before machine was made
	asking  chan struct{} // holds a value while a goroutine asks
	machine *Machine
	heard   map[Why]heard
	changed chan struct{} // closed when an answer has come; nil: nobody waits
}

// A Rank is what a Side knows of its rank. Its methods must not block.
type Rank interface {
	// Answer returns what the rank is in, for a question of the rank origin.
	Answer(why Why, origin int) string
	// Moved notes a message of the error channel: as long as an error makes progress, the job does
	// not stall.
	Moved()
}

// heard is the first of the ranks that have recently asked for a reason, and the time.
type heard struct {
	rank int
	at   time.Time // zero: none has
}

// NewSide returns a messenger that uses m.
func NewSide(m transport.Messenger, of Rank) *Side { return &Side{Messenger: m, rank: of} }

// begin makes what questions need. The caller holds mu.
func (s *Side) begin() {
	if s.machine == nil {
		s.asking, s.machine, s.heard = make(chan struct{}, 1), NewMachine(s.Rank(), s.Size()), make(map[Why]heard)
		for _, rank := range s.dead {
			s.machine.Died(rank)
		}
	}
}

// lately is how long questions for the same reason count as one.
const lately = time.Second

// heardOf says whether a rank before this one has asked for a reason, lately; any other, if
// anybody is set; by signal, or at any time by deadline.
func (s *Side) heardOf(why Why, anybody bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.heard[why]
	return !h.at.IsZero() && (anybody || h.rank < s.Rank()) && (why == ByDeadline || time.Since(h.at) < lately)
}

func (s *Side) hear(q *Message) {
	if h := s.heard[q.Why]; h.at.IsZero() || q.Origin <= h.rank || time.Since(h.at) >= lately {
		s.heard[q.Why] = heard{q.Origin, time.Now()}
	}
}

// An Await blocks until changed or ended is closed, and says whether it was changed.
type Await func(changed, ended <-chan struct{}) bool

// Ask asks all ranks, for the reason why, and waits until all have answered or ctx ends. It returns
// the answers so far by rank ("": it has died), and the first other rank that asked for the same
// reason at the same time; -1: none. If answers are missing after a second, it asks each of these
// ranks directly. One goroutine of the rank asks at a time.
func (s *Side) Ask(ctx context.Context, why Why, await Await) (said map[int]string, rival int) {
	s.mu.Lock()
	s.begin()
	s.mu.Unlock()
	select {
	case s.asking <- struct{}{}:
		defer func() { <-s.asking }()
	case <-ctx.Done():
		return nil, -1
	}
	text := s.rank.Answer(why, s.Rank())
	s.do(func() { s.machine.Ask(why, text) })
	patience := time.Second
	if end, ok := ctx.Deadline(); ok {
		patience = min(patience, time.Until(end)/2)
	}
	soon, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if !s.await(soon, await) && ctx.Err() == nil {
		s.do(func() { s.machine.Insist() })
		s.await(ctx, await)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.machine.End()
}

// AskOnce is Ask for a reason that several ranks have at the same time. Ok says that this rank is
// to print the answers. The first rank asks at once, and the others later, the last one after
// delay. By then they have usually been asked.
func (s *Side) AskOnce(ctx context.Context, why Why, delay time.Duration, await Await) (said map[int]string, ok bool) {
	select {
	case <-time.After(delay * time.Duration(s.Rank()) / time.Duration(s.Size())):
	case <-ctx.Done():
		return nil, false
	}
	if s.heardOf(why, true) {
		return nil, false
	}
	said, rival := s.Ask(ctx, why, await)
	return said, (rival < 0 || rival > s.Rank()) && !s.heardOf(why, false)
}

// await waits until all ranks have answered, or ctx has ended.
func (s *Side) await(ctx context.Context, await Await) (all bool) {
	for {
		s.mu.Lock()
		if all = s.machine.Complete(); !all && s.changed == nil {
			s.changed = make(chan struct{})
		}
		changed := s.changed
		s.mu.Unlock()
		if all || !await(changed, ctx.Done()) {
			return all
		}
	}
}

// Listen gives l the messages of the error channel.
func (s *Side) Listen(l transport.Listener) {
	s.channel = l
	s.Messenger.Listen(s)
}

// Take takes a message.
func (s *Side) Take(from int, payload []byte) {
	if !IsMessage(payload) {
		s.rank.Moved()
		s.channel.Take(from, payload)
		return
	}
	msg, err := Decode(payload, s.Size())
	if err != nil {
		return // no rank waits for it forever
	}
	text := ""
	if msg.Said == nil {
		text = s.rank.Answer(msg.Why, msg.Origin)
	}
	s.do(func() {
		if msg.Said == nil {
			s.hear(msg)
		}
		s.machine.Step(from, msg, text)
	})
}

// Died notes a death.
func (s *Side) Died(rank int) {
	s.channel.Died(rank)
	s.mu.Lock()
	asked := s.machine != nil
	if !asked {
		s.dead = append(s.dead, rank)
	}
	s.mu.Unlock()
	if asked {
		s.do(func() { s.machine.Died(rank) })
	}
}

// do feeds the machine, wakes goroutines that wait for answers, and sends the outputs.
func (s *Side) do(feed func()) {
	s.mu.Lock()
	s.begin()
	feed()
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
	poke := !s.machine.out.Empty()
	s.mu.Unlock()
	if poke {
		s.Poke()
	}
}

// Next returns the next message, those of the error channel first.
func (s *Side) Next() (to int, payload []byte, ok bool) {
	if to, payload, ok = s.channel.Next(); ok {
		return to, payload, true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.machine == nil {
		return 0, nil, false
	}
	o, ok := s.machine.Next()
	if !ok {
		return 0, nil, false
	}
	return o.To, Encode(o.Message), true
}

// Purpose says what a message is for: "diagnose", or what the error channel says.
func (s *Side) Purpose(payload []byte) string {
	if IsMessage(payload) {
		return "diagnose"
	}
	return s.channel.Purpose(payload)
}
