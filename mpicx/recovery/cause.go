package recovery

import (
	"errors"

	"github.com/mpicx/go-mpicx/mpicx"
)

// A cause is an error that all ranks have, in the form in which a rescue is told of it.
type cause struct {
	Corrupted, Revoked bool // neither: propagated
	Failures           []mpicx.Failure
	Dead               []int
}

func encode(errs []error) []cause {
	all := make([]cause, len(errs))
	for i, err := range errs {
		if p, ok := errors.AsType[*mpicx.PropagatedError](err); ok {
			all[i].Failures = p.Failures
		} else if c, ok := errors.AsType[*mpicx.CommCorruptedError](err); ok {
			all[i] = cause{Corrupted: true, Failures: c.Failures, Dead: c.Dead}
		} else {
			all[i].Revoked = true
		}
	}
	return all
}

func decode(all []cause) []error {
	errs := make([]error, len(all))
	for i, c := range all {
		switch {
		case c.Revoked:
			errs[i] = mpicx.ErrRevoked
		case c.Corrupted:
			errs[i] = &mpicx.CommCorruptedError{Failures: c.Failures, Dead: c.Dead}
		default:
			errs[i] = &mpicx.PropagatedError{Failures: c.Failures}
		}
	}
	return errs
}
