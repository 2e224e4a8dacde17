package transporttest

import "github.com/mpicx/go-mpicx/internal/transport"

var probes = []test{
	{"AProbeFindsTheMessageAndLeavesIt", 1, probeThenReceive},
	{"AProbeFindsTheMessageAReceiveWouldGet", 1, probeTellsTheFirst},
	{"AProbeLeavesTheLibrarysTagsAlone", 1, probeNegativeTags},
	{"ManyProbesFindOneMessage", 1, probeTogether},
	{"AProbeDoesNotFindWhatAReceiveGets", 1, probeAfterReceive},
}

func probeThenReceive(s *side) {
	for _, p := range []struct{ from, tag int }{
		{s.previous(), 2}, {transport.AnySource, 2}, {s.previous(), transport.AnyTag}, {transport.AnySource, transport.AnyTag},
	} {
		for _, w := range ways([]int{0, small, 1000, large}, modes...) {
			send, probe := w.pair(s, w.mode, 2, payload(w.size, s.Rank()), func() *op { return s.probe(p.from, p.tag) })
			probe.found(s.previous(), 2, w.size)
			s.probe(p.from, p.tag).found(s.previous(), 2, w.size)
			s.recv(p.from, p.tag, make([]byte, w.size)).got(s.previous(), 2, payload(w.size, s.previous()))
			send.ok()
		}
	}
}

func probeTellsTheFirst(s *side) {
	sent := []*op{
		s.send(s.next(), 5, payload(large, 5)),
		s.send(s.next(), 3, payload(small, 3)),
		s.send(s.next(), 5, payload(1000, 5)),
	}
	s.probe(s.previous(), transport.AnyTag).found(s.previous(), 5, large)
	s.probe(s.previous(), 3).found(s.previous(), 3, small)
	s.probe(s.previous(), 5).found(s.previous(), 5, large)
	s.recv(s.previous(), 5, make([]byte, large)).got(s.previous(), 5, payload(large, 5))
	s.probe(s.previous(), 5).found(s.previous(), 5, 1000)
	s.probe(s.previous(), transport.AnyTag).found(s.previous(), 3, small)
	s.recv(s.previous(), transport.AnyTag, make([]byte, large)).got(s.previous(), 3, payload(small, 3))
	s.recv(s.previous(), transport.AnyTag, make([]byte, large)).got(s.previous(), 5, payload(1000, 5))
	allOK(sent)
}

func probeNegativeTags(s *side) {
	for _, from := range []int{s.previous(), transport.AnySource} {
		early := s.probe(from, transport.AnyTag)
		s.barrier()
		library := s.send(s.next(), -7, payload(small, 7))
		s.probe(from, -7).found(s.previous(), -7, small)
		late := s.probe(from, transport.AnyTag)
		s.barrier()
		early.pending()
		late.pending()
		s.barrier()
		s.send(s.next(), 4, payload(small, 4)).ok()
		early.found(s.previous(), 4, small)
		late.found(s.previous(), 4, small)
		s.recv(s.previous(), -7, make([]byte, small)).got(s.previous(), -7, payload(small, 7))
		s.recv(s.previous(), 4, make([]byte, small)).got(s.previous(), 4, payload(small, 4))
		library.ok()
		s.barrier()
	}
}

func probeTogether(s *side) {
	for _, size := range []int{small, large} {
		var found []*op
		for range 3 {
			found = append(found, s.probe(s.previous(), 2), s.probe(transport.AnySource, 2), s.probe(s.previous(), transport.AnyTag))
		}
		s.barrier()
		send := s.send(s.next(), 2, payload(size, 2))
		for _, o := range found {
			o.found(s.previous(), 2, size)
		}
		s.recv(s.previous(), 2, make([]byte, size)).got(s.previous(), 2, payload(size, 2))
		send.ok()
	}
}

func probeAfterReceive(s *side) {
	for _, size := range []int{small, large} {
		recv := s.recv(s.previous(), 2, make([]byte, size))
		probe := s.probe(transport.AnySource, transport.AnyTag)
		s.barrier()
		first := s.send(s.next(), 2, payload(size, 1))
		recv.got(s.previous(), 2, payload(size, 1))
		first.ok()
		s.barrier()
		probe.pending()
		s.barrier()
		second := s.send(s.next(), 3, payload(size, 2))
		probe.found(s.previous(), 3, size)
		s.recv(s.previous(), 3, make([]byte, size)).got(s.previous(), 3, payload(size, 2))
		second.ok()
	}
}
