package mpicxtest

import (
	"fmt"
	"sync"
	"testing"

	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/mpicx"
)

// unnoticed collects the failed futures and unreceived messages that programs have left behind: see
// Run.
type unnoticed struct {
	mu    sync.Mutex
	texts []string
}

// option returns the option with which mpicx.Run reports them.
func (l *unnoticed) option() mpicx.Option {
	return hook.Option[mpicx.Option](func(s *hook.Settings) { s.Left = l.add })
}

func (l *unnoticed) add(rank int, what []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, text := range what {
		l.texts = append(l.texts, fmt.Sprintf("rank %d: %s", rank, text))
	}
}

// report fails t if there is anything.
func (l *unnoticed) report(t testing.TB) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, text := range l.texts {
		t.Error(text)
	}
}
