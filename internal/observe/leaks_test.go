package observe

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// common is an error of all ranks.
type common struct{ waiting.CommonError }

func (common) Error() string { return "common" }

// A rank remembers a future whose Wait an error has ended until the future is done, and once.
func TestExcusedFutures(t *testing.T) {
	var l Leaks
	first, p := future.New[int]()
	second, _ := future.New[int]()
	for range 2 {
		l.Interrupted([]*waiting.Cell{waiting.Of(first)}, common{})
	}
	require.Len(t, l.excused, 1)
	p.Complete(1, nil)
	l.Interrupted([]*waiting.Cell{waiting.Of(second)}, common{})
	require.Equal(t, []*waiting.Cell{waiting.Of(second)}, l.excused)
	l.Interrupted([]*waiting.Cell{waiting.Of(first)}, context.DeadlineExceeded)
	require.Len(t, l.excused, 1)
}
