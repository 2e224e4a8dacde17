package recovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/checkpoint"
)

// run is the state of one rank in a call of Run.
type run struct {
	*options
	fn   func(context.Context, *Attempt) error
	comm *mpicx.Comm

	tried  int     // number of attempts, and of failures to begin one
	begun  int     // number of attempts; it is the same at all ranks that are in one
	causes []error // the errors of all failures, in attempts and between them, in order
	own    error   // what this rank has given up with; nil: it has not
	stop   bool    // this rank gives up
	over   bool    // all have agreed that this was the last attempt

	// Places are the ranks of the communicator that Run began with. A rescue learns its place
	// from the others.
	places int   // number of places
	place  int   // this rank's place; -1: not known
	gone   []int // places that no rank has any more, ascending
	joined bool  // this rank is a rescue

	replaced []int // the ranks of comm that are rescues, ascending
	placed   bool  // gone and replaced are up to date for comm

	kept   *checkpoint.Store // nil: there is none yet
	opened bool              // it is on comm here; after meet, at all ranks
}

func newRun(comm *mpicx.Comm, fn func(context.Context, *Attempt) error, o *options) *run {
	r := &run{options: o, fn: fn, comm: comm, places: comm.Size(), place: comm.Rank(), placed: true}
	if r.joined = slices.Contains(comm.Replaced(), comm.Rank()); r.joined {
		// If all ranks that could tell more die, the rescues know only that something has failed.
		r.place, r.placed, r.tried, r.begun = -1, false, 1, 1
	}
	return r
}

// note notes whether this rank gives up because of err: it has said so, or another attempt would
// have the same error. What has ended an inner level may be mended by a new one.
func (r *run) note(err error) {
	_, below := errors.AsType[*givenUp](err)
	_, lost := errors.AsType[*checkpoint.LostError](err)
	if errors.Is(err, &givenUp{run: r}) {
		r.stop, r.own = true, cmp.Or(r.own, err)
	} else if !below && (lost || errors.Is(err, fs.ErrPermission)) {
		r.stop = true
	}
}

// giveUp returns the error of a Run that all ranks have agreed to end.
func (r *run) giveUp() error {
	cause := r.causes[len(r.causes)-1]
	errs, text := []error{cause}, cause.Error()
	if r.own != nil && !errors.Is(cause, r.own) {
		errs = append(errs, r.own)
		if own := r.own.Error(); strings.Contains(own, text) {
			text = own
		} else {
			text += "; here: " + own
		}
	}
	return &givenUp{r, fmt.Sprintf("recovery: given up after %d attempts: %s", r.tried, text), errs}
}

// meet exchanges what the ranks know. Later decisions depend only on the result. A rank whose
// context has ended begins no attempt.
func (r *run) meet(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	mine, all := []bool{!r.stop, r.placed, r.opened}, make([]bool, 3)
	mpicx.Allreduce(r.comm, mine, all, mpicx.LAnd).MustWait(ctx)
	goOn, placed, opened := all[0], all[1], all[2]
	if !placed {
		r.catchUp(ctx)
	}
	r.over, r.opened = !goOn || r.tried >= r.attempts, opened
	return nil
}

// A member is the message in which a rank describes itself to the others.
type member struct {
	Causes int // number of failures that it knows of
	Place  int // -1: not known
	Joined bool
}

// A history is the message from a rank that has been in Run for longest: the course of Run so far.
type history struct {
	Tried  int
	Begun  int
	Causes []cause
	Places int
	Gone   []int // from the previous exchange
}

// catchUp tells all ranks the history of a rank that has been in Run for longest, and the place of
// each rank.
func (r *run) catchUp(ctx context.Context) {
	ranks := mpicx.AllgatherValue(r.comm, member{len(r.causes), r.place, r.joined}).MustGet(ctx)
	// A rescue that has no history yet knows of fewer failures than the others.
	eldest := 0
	for rank, it := range ranks {
		if old := ranks[eldest]; it.Causes > old.Causes || it.Causes == old.Causes && it.Place >= 0 && old.Place < 0 {
			eldest = rank
		}
	}
	var h history
	if r.comm.Rank() == eldest {
		h = history{r.tried, r.begun, encode(r.causes), r.places, r.gone}
	}
	h = mpicx.BcastValue(r.comm, h, eldest).MustGet(ctx)
	if len(r.causes) < len(h.Causes) {
		r.causes = decode(h.Causes)
	}
	r.tried, r.begun, r.places, r.gone, r.replaced = h.Tried, h.Begun, h.Places, nil, nil
	places, next := make([]int, len(ranks)), 0
	for rank, it := range ranks {
		p := it.Place
		if p < 0 { // the ranks are in the order of their places, so it is the next place that can be free
			for p = next; slices.Contains(h.Gone, p); p++ {
			}
		}
		places[rank], next = p, p+1
		if it.Joined {
			r.replaced = append(r.replaced, rank)
		}
	}
	r.place = places[r.comm.Rank()]
	for p := range r.places {
		if _, taken := slices.BinarySearch(places, p); !taken {
			r.gone = append(r.gone, p)
		}
	}
	r.placed = true
}

// open opens the store on comm. A rank that has a store rejoins with its data.
func (r *run) open(ctx context.Context) (err error) {
	kept := r.kept
	if kept == nil {
		kept, err = checkpoint.Open(ctx, r.comm, r.store...)
	} else {
		kept, err = kept.Rejoin(ctx, r.comm)
	}
	if err == nil {
		r.kept, r.opened = kept, true
	}
	return err
}

// close closes the store after the last attempt. The next operation reports ranks that are lost
// afterwards.
func (r *run) close(ctx context.Context) error {
	if !r.opened {
		return nil
	}
	if err := r.kept.Close(context.WithoutCancel(ctx)); !isOf(err, r.comm) {
		return err
	}
	return nil
}
