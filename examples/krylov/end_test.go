package main

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
)

// endOf is the error of mpicx.Run in a process whose rank has got these errors.
type endOf []error

func (e endOf) Error() string   { return errors.Join(e...).Error() }
func (e endOf) Unwrap() []error { return e }

// Under a launcher a job is started again by all processes or by none. A rank that panicked comes
// back, whether its peers already count it as dead or not; a rank that was killed does not.
func TestWhoComesBack(t *testing.T) {
	processes = 4
	defer func() { processes = 0 }()
	panicked := []mpicx.Failure{{Rank: 3, Message: "panic: index out of range"}}
	for _, test := range []struct {
		err       mpicx.CommCorruptedError
		comesBack bool
	}{
		{mpicx.CommCorruptedError{Failures: panicked}, true},
		{mpicx.CommCorruptedError{Failures: panicked, Dead: []int{3}}, true},
		{mpicx.CommCorruptedError{Failures: panicked, Dead: []int{1, 3}}, false},
		{mpicx.CommCorruptedError{Dead: []int{3}}, false},
	} {
		require.Equal(t, test.comesBack, new(trial).isInjected(endOf{&test.err}), "%v", &test.err)
	}
}
