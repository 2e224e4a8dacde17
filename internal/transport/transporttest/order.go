package transporttest

import "github.com/mpicx/go-mpicx/internal/transport"

// Design rule F5.
var order = []test{
	{"MessagesOfAnySizeAndModeDoNotOvertake", 1, mixedMessagesKeepTheirOrder},
	{"TheOrderHoldsAmongTheMessagesAReceiveMatches", 1, matchingMessagesKeepTheirOrder},
	{"TheOrderHoldsForEachSource", 1, sourcesKeepTheirOrder},
	{"AMessageLeftByAReceiveKeepsItsPlace", 1, skippedMessagesKeepTheirOrder},
}

// mixture is a sequence of messages that transports send in different ways.
var mixture = []struct {
	size int
	mode transport.Mode // or the constant try
}{
	{large, 0}, {small, 0}, {small, transport.Synchronous}, {0, 0}, {large, transport.Synchronous},
	{1000, transport.Shared}, {large, transport.Shared}, {4097, 0}, {4096, 0}, {0, transport.Synchronous},
	{small, try}, {large, try}, {large, 0}, {1, try}, {large, transport.Shared | transport.Synchronous},
	{0, try}, {65, 0}, {65_536, 0}, {1000, try}, {small, 0},
}

// try stands in a mixture for a send by TrySend.
const try transport.Mode = 0xff

// sendAs sends in one of the mixture's modes.
func (s *side) sendAs(mode transport.Mode, to, tag int, buf []byte) *op {
	if mode == try {
		return s.trySend(to, tag, buf)
	}
	return s.isend(transport.Request{Peer: to, Tag: tag, Mode: mode, Buf: buf})
}

// sendMixture sends the mixture to a rank, with tags from a function.
func (s *side) sendMixture(to int, tag func(i int) int) []*op {
	var sent []*op
	for i, x := range mixture {
		sent = append(sent, s.sendAs(x.mode, to, tag(i), payload(x.size, s.Rank(), to, i)))
	}
	return sent
}

func mixedMessagesKeepTheirOrder(s *side) {
	for _, from := range []int{s.previous(), transport.AnySource} {
		for _, tag := range []int{5, transport.AnyTag} {
			for _, m := range meetings {
				var sent, received []*op
				m.inOrder(s, func() {
					sent = s.sendMixture(s.next(), func(int) int { return 5 })
				}, func() {
					for _, x := range mixture {
						received = append(received, s.recv(from, tag, make([]byte, x.size)))
					}
				})
				for i, o := range received {
					o.got(s.previous(), 5, payload(mixture[i].size, s.previous(), s.Rank(), i))
				}
				allOK(sent)
			}
			s.barrier()
			// The same with receives that are posted while messages arrive.
			sent := s.sendMixture(s.next(), func(int) int { return 5 })
			for i, x := range mixture {
				s.recv(from, tag, make([]byte, x.size)).got(s.previous(), 5, payload(x.size, s.previous(), s.Rank(), i))
			}
			allOK(sent)
		}
	}
}

// matchingMessagesKeepTheirOrder spreads the mixture over three tags.
func matchingMessagesKeepTheirOrder(s *side) {
	for _, m := range meetings {
		var sent []*op
		received := make(map[int]*op)
		m.inOrder(s, func() {
			sent = s.sendMixture(s.next(), func(i int) int { return i % 3 })
		}, func() {
			for _, tag := range []int{2, 0, 1} {
				for i := tag; i < len(mixture); i += 3 {
					received[i] = s.recv(s.previous(), tag, make([]byte, mixture[i].size))
				}
			}
		})
		for i, o := range received {
			o.got(s.previous(), i%3, payload(mixture[i].size, s.previous(), s.Rank(), i))
		}
		allOK(sent)
	}
}

func sourcesKeepTheirOrder(s *side) {
	for _, m := range meetings {
		var sent, received []*op
		m.inOrder(s, func() {
			for to := range s.Size() {
				sent = append(sent, s.sendMixture(to, func(int) int { return 5 })...)
			}
		}, func() {
			for range s.Size() * len(mixture) {
				received = append(received, s.irecv(transport.Request{Peer: transport.AnySource, Tag: 5, Take: true}))
			}
		})
		next := make([]int, s.Size())
		for _, o := range received {
			from := o.ok().Status.Source
			i := next[from]
			o.got(from, 5, payload(mixture[i].size, from, s.Rank(), i))
			next[from]++
		}
		allOK(sent)
	}
}

func skippedMessagesKeepTheirOrder(s *side) {
	sent := s.sendMixture(s.next(), func(i int) int { return i })
	s.barrier()
	left := func(i int) []byte { return payload(mixture[i].size, s.previous(), s.Rank(), i) }
	for i := 1; i < len(mixture); i += 2 {
		s.recv(s.previous(), i, make([]byte, mixture[i].size)).got(s.previous(), i, left(i))
	}
	for i := 0; i < len(mixture); i += 2 {
		s.recv(s.previous(), transport.AnyTag, make([]byte, mixture[i].size)).got(s.previous(), i, left(i))
	}
	allOK(sent)
}
