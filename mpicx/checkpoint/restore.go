package checkpoint

import (
	"context"
	"fmt"

	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/internal/observe"
)

// Restore sets the protected variables to their values in the newest version that all ranks
// have, and returns that version, the same at all ranks. Later versions, which an error has
// interrupted, are dropped. It is collective. Slices keep their memory if the values fit. To
// read the variable of another rank, for example of a dead one, call [Load].
//
// One agreement of all ranks decides on the version, whichever ranks have been told that a Save
// ended. Open and Rejoin have already brought together what this rank needs, from its own
// memory, from its group's, or from files.
//
// If the newest version is lost, Restore goes back to an older one that is whole. If none is, the
// error is a *[LostError]. It is [ErrNone] only if no Save has ended.
//
// The error is one of these, or one of the communicator, the same at all ranks. At
// this rank alone it may be a *[PartsError], say which variable does not fit, or be the end of
// ctx. Then no variable is set, and the version is 0. A rank whose ctx has ended takes part in the
// agreement all the same, so the next calls of all ranks work.
func (s *Store) Restore(ctx context.Context) (version int, err error) {
	if s == nil {
		return 0, nilStore("Restore")
	}
	// What is not in memory was chosen, and brought, by Open or Rejoin: see restore_choose.go.
	if err := s.background(ctx, "Restore", s.agree); err != nil {
		return 0, err
	}
	b := s.base
	switch {
	case b == nil && s.lost != nil:
		return 0, s.lost
	case b == nil:
		return 0, ErrNone
	case s.err != nil:
		return 0, s.err
	case b.mine() < 0:
		return 0, &PartsError{b.Key.Version, b.Key.Parts, s.comm.Size()}
	}
	records, err := b.records(b.mine())
	if err == nil {
		err = restore(s.vars, records[once], records[changing])
	}
	if err != nil {
		return 0, err
	}
	if s.isOwn(b) {
		b.once = s.once // it has the Once variables, as this rank's part
	}
	s.count(func(c *Stats) { c.Restores++ })
	hook.Of(s.comm).Happened(observe.Restore, fmt.Sprint("version ", b.Key.Version))
	return b.Key.Version, nil
}
