package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/recovery"
)

// A result contains the eigenvalues, and data on the run.
type result struct {
	Sheet       sheet     `json:"sheet"`
	Ranks       int       `json:"ranks"`
	Iterations  int       `json:"iterations"`
	Eigenvalues []float64 `json:"eigenvalues"` // the lowest, increasing, each once
	Attempts    int       `json:"attempts"`
	Causes      []string  `json:"causes"`   // of the attempts that failed
	Replaced    []int     `json:"replaced"` // ranks that rescues have replaced
	Gone        []int     `json:"gone"`     // ranks without a replacement
	Seconds     times     `json:"seconds"`  // of the rank that took part longest

	History []moment `json:"history,omitempty"`

	l *lanczos
}

// A moment contains the eigenvalues after a number of iterations.
type moment struct {
	Iterations  int       `json:"iterations"`
	Eigenvalues []float64 `json:"eigenvalues"`
}

// conclude makes the result, at rank 0.
func (s *solver) conclude(ctx context.Context, a *recovery.Attempt) error {
	all, err := mpicx.GatherValue(a.Comm, s.times, 0).Get(ctx)
	if err != nil || a.Comm.Rank() != 0 {
		return err
	}
	l := s.lanczos
	r := &result{
		Sheet: s.sheet, Ranks: a.Comm.Size(), Iterations: len(l.alpha), Eigenvalues: lowest(l.alpha, l.beta, s.eigenvalues),
		Attempts: a.N + 1, Causes: []string{}, Replaced: append([]int{}, a.Replaced...), Gone: append([]int{}, a.Gone...), l: l,
	}
	for _, cause := range a.Causes {
		r.Causes = append(r.Causes, cause.Error())
	}
	for _, t := range all {
		if t.total() > r.Seconds.total() {
			r.Seconds = t
		}
	}
	s.result = r
	return nil
}

// show prints the result.
func (r *result) show(o *options, w io.Writer) error {
	if o.json {
		for k := range o.history {
			j := (k + 1) * r.Iterations / o.history
			r.History = append(r.History, moment{j, lowest(r.l.alpha[:j], r.l.beta[:j], o.eigenvalues)})
		}
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	_, err := io.WriteString(w, r.text())
	return err
}

func (r *result) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "graphene, %d x %d cells, %d rows on %d ranks: %d iterations\n", r.Sheet.Width, r.Sheet.Height, r.Sheet.sites(), r.Ranks, r.Iterations)
	for i, cause := range r.Causes {
		fmt.Fprintf(&b, "attempt %d failed: %s\n", i+1, cause)
	}
	if len(r.Replaced) > 0 {
		fmt.Fprintf(&b, "rescues have the places of ranks %v\n", r.Replaced)
	}
	if len(r.Gone) > 0 {
		fmt.Fprintf(&b, "the others have the rows of ranks %v\n", r.Gone)
	}
	for _, e := range r.Eigenvalues {
		fmt.Fprintf(&b, "%18.12f eV\n", e)
	}
	total := r.Seconds.total()
	for _, part := range r.Seconds.parts() {
		if part.seconds > 0 {
			fmt.Fprintf(&b, "%9.3f s  %5.1f %%  %s\n", part.seconds, 100*part.seconds/total, part.name)
		}
	}
	return b.String()
}
