package checkpoint

import (
	"errors"
	"fmt"
)

// ErrNone is what [Store.Restore] returns if no version has been saved. Data that were saved and
// are lost are a *[LostError].
var ErrNone = errors.New("checkpoint: no version was saved")

// nilStore is the error of a method of a Store that is none.
func nilStore(method string) error {
	return fmt.Errorf("checkpoint: %s: nil Store (what an Attempt of recovery.Run has without its option Checkpoint)", method)
}

// A LostError says that versions were saved, and none can be restored. More ranks were lost than
// the scheme survives, and files are missing or damaged, or there are none. All ranks get the same.
// If the missing files come back, the next job restores them. A job that is to begin anew uses
// another directory, or one from which all files were removed.
type LostError struct {
	Version int   // the newest that was saved; -1: unknown, because only a damaged manifest is left
	Ranks   []int // ranks whose data are lost, as numbered in the Save; nil: all
}

func (e *LostError) Error() string {
	switch {
	case e.Version < 0:
		return "checkpoint: what was saved is lost: " + manifestName + " is damaged, and there are no files"
	case e.Ranks == nil:
		return fmt.Sprintf("checkpoint: version %d is lost: no rank, and no file, has any data of it", e.Version)
	}
	return fmt.Sprintf("checkpoint: version %d is lost: no rank, and no undamaged file, has the data of ranks %v", e.Version, e.Ranks)
}

// A PartsError says that this rank has no part in a version, because another number of ranks
// saved it. [Load] reads the parts.
type PartsError struct{ Version, Parts, Ranks int }

func (e *PartsError) Error() string {
	return fmt.Sprintf("checkpoint: version %d is of %d ranks, and there are %d: this rank has no part of it", e.Version, e.Parts, e.Ranks)
}

// A LimitError says that a version needs more memory than MaxBytes.
type LimitError struct{ Need, Limit int64 }

func (e *LimitError) Error() string {
	return fmt.Sprintf("checkpoint: two versions need %d bytes, expected at most %d (MaxBytes)", e.Need, e.Limit)
}

// A SaveError says that a version was not saved, or not saved to files. All ranks get one. The
// version before is whole.
type SaveError struct {
	Version int
	// InMemory says that the version was saved and can be restored, but that some of its files are
	// missing.
	InMemory bool
	Err      error // the cause at this rank; nil: it is at another rank
}

func (e *SaveError) Error() string {
	what := "was not saved"
	if e.InMemory {
		what = "is in memory only"
	}
	if e.Err == nil {
		return fmt.Sprintf("checkpoint: version %d %s because of another rank", e.Version, what)
	}
	return fmt.Sprintf("checkpoint: version %d %s: %v", e.Version, what, e.Err)
}

// Unwrap returns Err.
func (e *SaveError) Unwrap() error { return e.Err }
