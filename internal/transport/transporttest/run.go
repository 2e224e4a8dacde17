package transporttest

import (
	"testing"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// A World calls body at every rank of a communicator that nothing else uses and that has no parent.
// It returns once the ranks of this process have returned from body. If ranks are goroutines, it
// starts them all. If ranks are processes, each process runs the whole suite, and World calls body
// once, with this process's side of a communicator that is new or as good as new.
//
// A rank that fails leaves body by t.FailNow. Other ranks that wait for it give up after a minute;
// in a testing/synctest bubble, at once.
type World func(t *testing.T, body func(t *testing.T, c transport.Comm))

// Run runs the suite as subtests of t.
func Run(t *testing.T, world World) {
	for _, subject := range []struct {
		name  string
		tests []test
	}{
		{"Matching", matching},
		{"Order", order},
		{"Sends", sends},
		{"Truncation", truncation},
		{"Buffers", buffers},
		{"Requests", requests},
		{"Probe", probes},
		{"Mprobe", mprobes},
		{"Cancel", cancels},
		{"Pending", pending},
		{"Sub", subs},
		{"Advance", advances},
		{"Generations", generations},
		{"Boards", boards},
		{"Listening", listening},
		{"Releases", releases},
		{"Concurrency", concurrency},
		{"Stress", stress},
	} {
		t.Run(subject.name, func(t *testing.T) {
			for _, test := range subject.tests {
				t.Run(test.name, func(t *testing.T) {
					world(t, test.run)
				})
			}
		})
	}
}

// A test is one program of the suite.
type test struct {
	name  string
	ranks int // the minimum
	body  func(*side)
}

func (p test) run(t *testing.T, c transport.Comm) {
	s := newSide(t, c)
	if s.Size() < p.ranks {
		if s.Rank() == 0 {
			s.Skipf("needs %d ranks", p.ranks)
		}
		return
	}
	p.body(s)
	s.finish()
}
