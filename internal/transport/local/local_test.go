package local

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/transporttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestConformance runs the suite in synctest bubbles. The package promises that every blocked
// rank counts as blocked there, and a test that hangs fails at once.
func TestConformance(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5, 8} {
		if testing.Short() && n > 3 {
			break
		}
		t.Run(fmt.Sprintf("%d ranks", n), func(t *testing.T) {
			transporttest.Run(t, func(t *testing.T, body func(*testing.T, transport.Comm)) {
				synctest.Test(t, func(t *testing.T) { run(t, n, body) })
			})
		})
	}
}

// run calls body at n ranks.
func run(t *testing.T, n int, body func(*testing.T, transport.Comm)) {
	var ranks sync.WaitGroup
	start := New
	if n == 3 {
		start = NewMortal // the same while no rank dies
	}
	for _, c := range start(n) {
		ranks.Go(func() { body(t, c) })
	}
	ranks.Wait()
}
