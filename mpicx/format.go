package mpicx

import (
	"errors"
	"fmt"
	"io"

	pkgerrors "github.com/pkg/errors"
)

// traced returns err with a stack, unless it has one: once, where the fault
// starts. At this rank %+v prints it; the others get Failure.Origin.
func traced(err error) error {
	var has interface{ StackTrace() pkgerrors.StackTrace }
	if errors.As(err, &has) {
		return err
	}
	return pkgerrors.WithStack(err)
}

// Format prints, for %+v, a line for each failure with its origin and time, and
// at the rank that raised one its stack.
func (e *PropagatedError) Format(s fmt.State, verb rune) { format(s, verb, e, e.Failures, e.causes) }

// Format is that of PropagatedError.
func (e *CommCorruptedError) Format(s fmt.State, verb rune) {
	format(s, verb, e, e.Failures, e.causes)
}

func format(s fmt.State, verb rune, err error, failures []Failure, causes error) {
	text := err.Error()
	switch {
	case verb == 'q':
		text = fmt.Sprintf("%q", text)
	case verb == 'v' && s.Flag('+'):
		for _, f := range failures {
			text += fmt.Sprintf("\n  %v\n    at %s, %s", f, f.Origin, f.Time.Format("15:04:05.000000"))
		}
		if causes != nil {
			text += fmt.Sprintf("\n  here: %+v", causes)
		}
	}
	io.WriteString(s, text) //nolint:errcheck // as fmt does
}

// together is errors.Join that leaves one error as it is, for %+v.
func together(errs []error) error {
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}
