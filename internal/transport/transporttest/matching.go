package transporttest

import (
	"github.com/mpicx/go-mpicx/internal/transport"
)

var matching = []test{
	{"AReceiveTakesTheMessageFromItsSource", 1, receiveBySource},
	{"AnyTagLeavesTheLibrarysTagsAlone", 1, receiveNegativeTags},
	{"TheReceivePostedFirstGetsTheMessage", 1, receiveOldestFirst},
	{"AReceiveThatDoesNotMatchWaits", 1, receiveMismatch},
	{"ManyMessagesInTheReverseOrderOfTheirTags", 1, receiveReversed},
}

func receiveBySource(s *side) {
	for _, w := range ways([]int{small, large}) {
		var sent, received []*op
		w.inOrder(s, func() {
			for to := range s.Size() {
				sent = append(sent, s.send(to, 7, payload(w.size, s.Rank(), to)))
			}
		}, func() {
			for i := range s.Size() {
				received = append(received, s.recv(s.Size()-1-i, 7, make([]byte, w.size)))
			}
		})
		for i, o := range received {
			from := s.Size() - 1 - i
			o.got(from, 7, payload(w.size, from, s.Rank()))
		}
		allOK(sent)
	}
}

// receiveNegativeTags sends a message with one of the library's tags before one with a user's tag.
func receiveNegativeTags(s *side) {
	for _, from := range []int{s.previous(), transport.AnySource} {
		for _, w := range ways([]int{small, large}) {
			var library, user, users, librarys *op
			w.inOrder(s, func() {
				library = s.send(s.next(), -7, payload(w.size, s.Rank(), 7))
				user = s.send(s.next(), 4, payload(w.size, s.Rank(), 4))
			}, func() {
				users = s.recv(from, transport.AnyTag, make([]byte, w.size))
				librarys = s.recv(from, -7, make([]byte, w.size))
			})
			users.got(s.previous(), 4, payload(w.size, s.previous(), 4))
			librarys.got(s.previous(), -7, payload(w.size, s.previous(), 7))
			library.ok()
			user.ok()
		}
	}
}

// receiveOldestFirst posts receives that all match the same messages.
func receiveOldestFirst(s *side) {
	left := s.previous()
	posted := []struct{ from, tag int }{
		{transport.AnySource, transport.AnyTag}, {left, 3}, {left, transport.AnyTag}, {transport.AnySource, 3},
	}
	for _, size := range []int{small, large} {
		s.barrier()
		var sent, received []*op
		for _, p := range posted {
			received = append(received, s.recv(p.from, p.tag, make([]byte, size)))
		}
		s.barrier()
		for i := range posted {
			sent = append(sent, s.send(s.next(), 3, payload(size, s.Rank(), i)))
		}
		for i, o := range received {
			o.got(left, 3, payload(size, left, i))
		}
		allOK(sent)
	}
}

func receiveMismatch(s *side) {
	waiting := []*op{
		s.recv(s.previous(), 6, make([]byte, small)),
		s.recv(transport.AnySource, 8, make([]byte, small)),
		s.recv(s.previous(), -8, make([]byte, small)),
	}
	other := s.send(s.next(), 7, payload(small, 7))
	s.recv(s.previous(), 7, make([]byte, small)).got(s.previous(), 7, payload(small, 7))
	other.ok()
	for _, o := range waiting {
		o.pending()
	}
	s.barrier()
	for i, tag := range []int{6, 8, -8} {
		s.send(s.next(), tag, payload(small, tag)).ok()
		waiting[i].got(s.previous(), tag, payload(small, tag))
	}
}

// receiveReversed receives many messages in the reverse order: either the last message is wanted
// first, or the last receive posted is served first.
func receiveReversed(s *side) {
	const n = 1000
	for _, mode := range []transport.Mode{0, transport.Synchronous} {
		for _, m := range meetings {
			var sent, received []*op
			m.inOrder(s, func() {
				for tag := range n {
					sent = append(sent, s.isend(transport.Request{Peer: s.next(), Tag: tag, Mode: mode}))
				}
				s.send(s.next(), n, nil).ok() // once all others have arrived
			}, func() {
				if m == "message first" {
					s.probe(s.previous(), n).ok()
				}
				for i := range n {
					received = append(received, s.recv(s.previous(), n-1-i, nil))
				}
			})
			for i, o := range received {
				o.found(s.previous(), n-1-i, 0)
			}
			allOK(sent)
			s.recv(s.previous(), n, nil).ok()
		}
	}
}
