package recovery

import (
	"errors"

	"github.com/mpicx/go-mpicx/mpicx"
)

// A cause is an error that all ranks have, in the form in which a rescue is told of it. If both are
// nil, it is mpicx.ErrRevoked.
type cause struct {
	Propagated *mpicx.PropagatedError
	Corrupted  *mpicx.CommCorruptedError
}

func encode(errs []error) []cause {
	all := make([]cause, len(errs))
	for i, err := range errs {
		if !errors.As(err, &all[i].Propagated) {
			_ = errors.As(err, &all[i].Corrupted)
		}
	}
	return all
}

func decode(all []cause) []error {
	errs := make([]error, len(all))
	for i, c := range all {
		switch errs[i] = mpicx.ErrRevoked; {
		case c.Propagated != nil:
			errs[i] = c.Propagated
		case c.Corrupted != nil:
			errs[i] = c.Corrupted
		}
	}
	return errs
}
