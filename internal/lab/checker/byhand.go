package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mpicx/go-mpicx/mpicx"
)

// The rules of ErrorsReturn (H2, H3). Here the program itself does what the library does otherwise:
// a rank that gets an error of which the others are not told revokes the communicators that it
// leaves, and all living ranks agree on what to do.

// A claim is that a rank of the world has died. It is checked at the end of the run.
type claim struct {
	rank int // -1: any
	by   string
}

// ofDeaths reports whether an error is one that only ErrorsReturn has, and checks that there is a
// reason for it.
func (h *history) ofDeaths(e *event, candidates []*inst) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	p, died := errors.AsType[*mpicx.ProcFailedError](e.err)
	revocation := strings.HasPrefix(e.err.Error(), mpicx.ErrRevoked.Error()) // what it wraps may be of another communicator
	switch {
	case died && !revocation:
		for _, r := range p.Ranks {
			if len(e.comm.members) == 0 { // made by Shrink; the members are known only after a call that finds them
				h.claims = append(h.claims, claim{-1, e.what})
				continue
			}
			if r < 0 || r >= len(e.comm.members) {
				h.failures = append(h.failures, fmt.Sprintf("H1: %s returns %v, on a communicator of %d ranks", e.what, e.err, len(e.comm.members)))
				continue
			}
			h.claims = append(h.claims, claim{e.comm.members[r], e.what})
		}
	case errors.Is(e.err, mpicx.ErrRevoked):
		// A communicator whose parent is revoked while it is being made is revoked by ranks that
		// give it up.
		revoked := func(c *inst) bool {
			for ; c != nil && !h.revoked[c.name]; c = c.parent {
			}
			return c != nil
		}
		if !slices.ContainsFunc(candidates, revoked) {
			h.failures = append(h.failures, fmt.Sprintf("H2: %s returns %v, which nobody has revoked", e.what, e.err))
		}
	case errors.Is(e.err, mpicx.ErrProcFailedPending) && e.pends:
		h.claims = append(h.claims, claim{-1, e.what})
	default:
		return false
	}
	return true
}

// automatic checks that the library corrupted nothing by itself.
func (h *history) automatic(e *event, candidates []*inst) {
	if !h.byHand {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range candidates {
		for ; c != nil; c = c.parent {
			if h.scoped[c.name] {
				return
			}
			for what := range h.raised {
				if what.comm == c.name {
					return
				}
			}
		}
	}
	h.failures = append(h.failures, fmt.Sprintf("H2: %s returns %v, though nobody has raised an error", e.what, e.err))
}

// onlyTheDead checks that every rank that was reported dead is dead.
func (h *history) onlyTheDead() {
	for _, c := range h.claims {
		if !h.dead[c.rank] && !h.gone[c.rank] && (c.rank >= 0 || len(h.dead)+len(h.gone) == 0) {
			h.failures = append(h.failures, fmt.Sprintf("H1: %s tells that rank %d of the world has died, which lives", c.by, c.rank))
			return
		}
	}
}

// repairByHand is repair under ErrorsReturn. All living ranks agree on whether all have succeeded,
// and on which ranks are dead. An error that comes in between comes to all, and they agree again.
func (r *rank) repairByHand(s *step, e *env, c *inst) error {
	err := r.all(s.body, e)
	if err != nil {
		r.revoke(e, c)
	}
	known := len(c.Failed())
	if s.has(r.id) {
		c.AckFailed(known)
	}
	acked := c.AckFailed(0)
	const success = 1 << 30
	proposal := -1 &^ (1 << r.id)
	if err != nil {
		proposal &^= success
	}
	flag := 0
	// The flag contains the outcome.
	_ = r.untilNoVerdict("Agree", e, c, func() (err error) {
		flag, err = c.Agree(proposal).Get(e.ctx)
		return err
	}, func(err error) {
		p, died := errors.AsType[*mpicx.ProcFailedError](err)
		if died {
			flag = p.Flag
		} else if err == nil && acked < known {
			r.failf("H5", "Agree on %s at rank %d returns nil, though this rank knew of %d deaths and had acknowledged %d", c.name, r.id, known, acked)
		}
		if (err == nil || died) && flag>>r.id&1 != 0 {
			r.failf("H5", "Agree on %s at rank %d returns %#x, in which this rank's bit is not cleared", c.name, r.id, uint64(flag))
		}
		outcome := fmt.Sprintf("flag %#x, %v", uint64(flag), err)
		if died { // which of them have returned, each rank knows for itself
			outcome = fmt.Sprintf("flag %#x, dead %v", uint64(flag), p.Ranks)
		}
		r.outcome(fmt.Sprintf("H5: Agree %d%s on %s", s.id, e.path, c.name), outcome)
		if err != nil {
			flag = 0
		}
	})
	if flag&success != 0 {
		return nil
	}
	c.lost = true
	return r.remake(s, e, c)
}

// untilNoVerdict repeats a repair operation while it ends with an error that all ranks have. It
// calls done with the first other result.
func (r *rank) untilNoVerdict(what string, e *env, c *inst, call func() error, done func(error)) error {
	for range 100 {
		v := event{what: what, comm: c, begin: r.now()}
		v.err = call()
		r.note(&v, e, false)
		if !isVerdict(v.err) {
			done(v.err)
			return v.err
		}
	}
	r.failf("P1", "%s on %s at rank %d ends with errors again and again", what, c.name, r.id)
	return errors.New("no end of errors")
}
