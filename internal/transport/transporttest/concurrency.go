package transporttest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// Each rank has many goroutines at once, for the race detector.
var concurrency = []test{
	{"ManyGoroutinesShareTheReceiving", 1, receiveInGoroutines},
	{"ProbesConsumeNothing", 1, probeInGoroutines},
	{"AReceiveIsCancelledOrMatched", 1, cancelReceivesInGoroutines},
	{"ASendIsCancelledOrReceived", 1, cancelSendsInGoroutines},
	{"CommunicatorsAreMadeInGoroutines", 1, subsInGoroutines},
	{"LookingAtWhatIsPendingDisturbsNothing", 1, lookInGoroutines},
	{"AnErrorEndsEachRequestOnce", 1, advanceUnderTraffic},
	{"AnErrorMeetsAMatch", 1, advanceAgainstMatch},
}

// anyMode draws a way to send.
func anyMode(r *rand.Rand) transport.Mode { return modes[r.IntN(len(modes))] }

// receiveInGoroutines lets goroutines compete for the messages of all ranks.
func receiveInGoroutines(s *side) {
	const senders, receivers, each = 2, 3, 50
	seed := s.seed()
	message := func(from, to, g, i int) []byte {
		buf := payload(8+random(seed, from, to, g, i).IntN(9000), from, to, g, i)
		binary.LittleEndian.PutUint32(buf, uint32(i))
		return buf
	}
	var mu sync.Mutex
	seen := make(map[[3]int]int)
	var left atomic.Int64
	left.Store(int64(s.Size() * senders * each))
	s.together(senders+receivers, func(g int) {
		if g < senders {
			for i := range each {
				for to := range s.Size() {
					to = (to + s.Rank() + i) % s.Size()
					s.sendAs(anyMode(random(seed, g, i)), to, g, message(s.Rank(), to, g, i)).ok()
				}
			}
			return
		}
		for left.Add(-1) >= 0 {
			recv := s.recv(transport.AnySource, transport.AnyTag, make([]byte, 10_000)).ok()
			from, tag := recv.Status.Source, recv.Status.Tag
			i := int(binary.LittleEndian.Uint32(recv.Buf))
			recv.got(from, tag, message(from, s.Rank(), tag, i))
			mu.Lock()
			seen[[3]int{from, tag, i}]++
			mu.Unlock()
		}
	})
	require.Len(s, seen, s.Size()*senders*each)
	for message, times := range seen {
		require.Equal(s, 1, times, "message %v", message)
	}
}

func probeInGoroutines(s *side) {
	const rounds, probers = 40, 3
	for round := range rounds {
		size := sizes[round%len(sizes)]
		var send *op
		s.together(1+probers, func(g int) {
			if g == 0 {
				send = s.send(s.next(), 1, payload(size, round))
				return
			}
			s.probe(transport.AnySource, 1).found(s.previous(), 1, size)
		})
		s.recv(s.previous(), 1, make([]byte, size)).got(s.previous(), 1, payload(size, round))
		send.ok()
	}
}

// cancelMeanwhile cancels o while another goroutine begins an operation.
func (o *op) cancelMeanwhile(r *rand.Rand, begin func() *op) (other *op, cancelled bool) {
	spin := r.IntN(4)
	o.s.together(2, func(g int) {
		if g == 1 {
			other = begin()
			return
		}
		for range spin {
			runtime.Gosched()
		}
		cancelled = o.s.Cancel(&o.Request)
	})
	return other, cancelled
}

// cancelReceivesInGoroutines cancels a receive while its message arrives.
func cancelReceivesInGoroutines(s *side) {
	const rounds = 100
	r := random(s.seed(), s.Rank())
	for round := range rounds {
		size := []int{small, large}[round%2]
		recv := s.recv(s.previous(), 1, make([]byte, size))
		s.barrier()
		send, cancelled := recv.cancelMeanwhile(r, func() *op { return s.send(s.next(), 1, payload(size, round)) })
		if cancelled {
			recv.fails(transport.ErrCancelled)
			recv = s.recv(s.previous(), 1, make([]byte, size))
		}
		recv.got(s.previous(), 1, payload(size, round))
		send.ok()
	}
}

// cancelSendsInGoroutines cancels a send while its receive is posted. It repeats a send that was
// cancelled, so each rank receives one message.
func cancelSendsInGoroutines(s *side) {
	const rounds = 100
	r := random(s.seed(), s.Rank())
	for round := range rounds {
		size := []int{small, large}[round%2]
		s.barrier()
		send := s.ssend(s.next(), 1, payload(size, round))
		recv, cancelled := send.cancelMeanwhile(r, func() *op { return s.recv(s.previous(), 1, make([]byte, size)) })
		if cancelled {
			send.fails(transport.ErrCancelled)
			clear(send.Buf)
			send = s.send(s.next(), 1, payload(size, round))
		}
		recv.got(s.previous(), 1, payload(size, round))
		send.ok()
	}
}

func subsInGoroutines(s *side) {
	const goroutines, each = 5, 4
	s.together(goroutines, func(g int) {
		for i := range each {
			name := transport.Name{Epoch: s.Epoch(), Seq: uint64(i), Color: g}
			s.sub(name, nil).ring(1, g, i)
		}
	})
}

// lookInGoroutines inspects pending requests while they end and are reused.
func lookInGoroutines(s *side) {
	const goroutines, rounds = 4, 60
	var left atomic.Int32
	left.Store(goroutines)
	s.together(goroutines+1, func(g int) {
		if g == goroutines {
			var wrong []string
			visit := func(r *transport.Request) {
				if r.Tag >= goroutines || r.Peer < 0 || len(r.Buf) == 0 {
					wrong = append(wrong, fmt.Sprintf("%v, peer %d, tag %d, %d bytes", r.Kind, r.Peer, r.Tag, len(r.Buf)))
				}
			}
			for left.Load() > 0 {
				s.EachPending(visit)
				require.Empty(s, wrong)
				runtime.Gosched()
			}
			return
		}
		defer left.Add(-1)
		for round := range rounds {
			size := []int{small, large}[round%2]
			recv := s.recv(s.previous(), g, make([]byte, size))
			send := s.ssend(s.next(), g, payload(size, s.Rank(), g, round))
			recv.got(s.previous(), g, payload(size, s.previous(), g, round))
			send.ok()
			for _, o := range []*op{send, recv} { // what nobody may see
				o.Peer, o.Tag, o.Buf = -1, 1<<20, nil
			}
		}
	})
}

// causeError is the cause of the error that ended an epoch.
type causeError transport.Epoch

func (e causeError) Error() string { return fmt.Sprintf("error of epoch %v", transport.Epoch(e)) }

// nilOrCauseOf waits and checks that the error, if any, is of the given epoch or of a later one.
func (o *op) nilOrCauseOf(epoch transport.Epoch) {
	o.s.Helper()
	if err := o.wait(); err != nil {
		cause, ok := errors.AsType[causeError](err)
		require.True(o.s, ok, "%v ended with %v", o, err)
		require.False(o.s, transport.Epoch(cause).Stale(epoch), "%v ended with an error from before", o)
	}
}

// advanceUnderTraffic has errors while goroutines send to all ranks and receive from any. A message
// must be received in the epoch in which it was sent.
func advanceUnderTraffic(s *side) {
	const rounds, workers, quota = 20, 3, 4
	ctl := s.aloof()
	seed := s.seed()
	var stop atomic.Bool
	var sequence atomic.Int64
	received := make(chan struct{}, quota)
	var mu sync.Mutex
	seen := make(map[[2]uint64]bool)

	send := func(g int, epoch transport.Epoch) {
		i := sequence.Add(1)
		r := random(seed, s.Rank(), g, int(i))
		buf := payload(24+sizes[r.IntN(len(sizes))], s.Rank(), int(i))
		binary.LittleEndian.PutUint64(buf, uint64(epoch))
		binary.LittleEndian.PutUint64(buf[8:], uint64(s.Rank()))
		binary.LittleEndian.PutUint64(buf[16:], uint64(i))
		mode := anyMode(r)
		o := s.at(epoch).sendAs(mode, r.IntN(s.Size()), g, buf)
		o.nilOrCauseOf(epoch)
		if mode == try || mode&transport.Shared == 0 {
			clear(buf)
		}
	}
	receive := func(epoch transport.Epoch) {
		o := s.at(epoch).recv(transport.AnySource, transport.AnyTag, make([]byte, 24+large))
		if o.nilOrCauseOf(epoch); o.Err != nil {
			return
		}
		select {
		case received <- struct{}{}:
		default:
		}
		require.Equal(s, epoch, transport.Epoch(binary.LittleEndian.Uint64(o.Buf)), "epoch of a message")
		require.Equal(s, o.Status.Source, int(binary.LittleEndian.Uint64(o.Buf[8:])))
		i := binary.LittleEndian.Uint64(o.Buf[16:])
		want := payload(o.Status.Bytes, o.Status.Source, int(i))
		s.same(want[24:], o.Buf[24:o.Status.Bytes], "message")
		mu.Lock()
		defer mu.Unlock()
		key := [2]uint64{uint64(o.Status.Source), i}
		require.False(s, seen[key], "message %v was received twice", key)
		seen[key] = true
	}
	s.together(2*workers+1, func(g int) {
		switch g {
		case 2 * workers:
			for round := range rounds {
				for range quota {
					await(s, received)
				}
				ctl.barrier() // in an epoch that all ranks share, each rank gets something
				for range random(seed, s.Rank(), round).IntN(10) {
					runtime.Gosched()
				}
				stop.Store(round == rounds-1)
				s.Advance(0, causeError(s.Epoch()))
				ctl.barrier()
			}
		default:
			for {
				epoch := s.Epoch()
				switch {
				case stop.Load():
					return
				case g < workers:
					send(g, epoch)
				default:
					receive(epoch)
				}
			}
		}
	})
}

// advanceAgainstMatch lets a single match race with the errors at both its ends. The ends need not
// agree on which came first, but each ends once, and a receive without an error has the message.
func advanceAgainstMatch(s *side) {
	const rounds = 100
	ctl := s.aloof()
	for round := range rounds {
		size := []int{small, large}[round%2]
		cause := errors.New("an error")
		epoch := s.Epoch()
		var recv, send *op
		ctl.barrier()
		s.together(3, func(g int) {
			switch g {
			case 0:
				recv = s.at(epoch).recv(s.previous(), 1, make([]byte, size))
			case 1:
				send = s.at(epoch).ssend(s.next(), 1, payload(size, round))
			case 2:
				s.Advance(0, cause)
			}
		})
		if recv.wait() == nil {
			recv.got(s.previous(), 1, payload(size, round))
		} else {
			recv.fails(cause)
			copy(recv.Buf, payload(size, -1))
		}
		if send.wait() != nil {
			send.fails(cause)
		}
		clear(send.Buf)
		ctl.barrier()
		if recv.Err != nil {
			s.same(payload(size, -1), recv.Buf, "buffer of a receive that an error ended")
		}
	}
}
