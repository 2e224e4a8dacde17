package fault

import (
	"fmt"
	"io/fs"
	"math"
	"slices"
	"time"

	"github.com/mpicx/go-mpicx/mpicx/krylov"
)

// An Injection is the record of a fault. Ranks exchange these.
type Injection struct {
	Fault
	Fired    bool   `json:"fired"`
	What     string `json:"what,omitempty"` // what it did
	Detected bool   `json:"detected"`

	At   time.Time `json:"-"`
	Done int       `json:"iterationsDone"` // when it fired
}

// An Injector makes the faults of one rank happen, each once, even if the solver starts again.
type Injector struct {
	Injections []Injection
}

// NewInjector returns the injector of a rank.
func NewInjector(faults []Fault, rank int) *Injector {
	in := &Injector{}
	for _, f := range faults {
		if f.Rank == rank {
			in.Injections = append(in.Injections, Injection{Fault: f})
		}
	}
	return in
}

// Inherit drops the faults that have struck the process before this one in the rank's place. Peers
// say how many iterations and recoveries there were; they may not have counted the last iteration.
func (in *Injector) Inherit(done, recoveries int) {
	in.Injections = slices.DeleteFunc(in.Injections, func(i Injection) bool {
		switch {
		case i.Recovery > 0:
			return i.Recovery <= recoveries
		case i.EndsRank():
			return i.Iter <= done+1
		}
		return i.Iter <= done
	})
}

// HasPanicked reports whether the rank has panicked because of a fault.
func (in *Injector) HasPanicked() bool {
	return slices.ContainsFunc(in.Injections, func(i Injection) bool { return i.Kind == KindPanic && i.Fired })
}

// Strike is called between two iterations. Done is the number of the rank's iterations so far; die
// ends it.
func (in *Injector) Strike(s *krylov.State, done int, die func()) error {
	for i := range in.Injections {
		inj := &in.Injections[i]
		if inj.Fired || inj.Recovery > 0 || done < inj.Iter {
			continue
		}
		if err := in.fire(inj, s, done, die); err != nil {
			return err
		}
	}
	return nil
}

// StrikeRecovery is called in the middle of each recovery. The number counts recoveries, including
// interrupted ones.
func (in *Injector) StrikeRecovery(number, done int, die func()) error {
	for i := range in.Injections {
		inj := &in.Injections[i]
		if inj.Fired || inj.Recovery == 0 || number < inj.Recovery {
			continue
		}
		if err := in.fire(inj, nil, done, die); err != nil {
			return err
		}
	}
	return nil
}

func (in *Injector) fire(inj *Injection, s *krylov.State, done int, die func()) error {
	inj.Fired, inj.At, inj.Done = true, time.Now(), done
	switch inj.Kind {
	case KindError:
		inj.What = "a component on the rank returned an error"
		return component()
	case KindPanic:
		inj.What = "a component on the rank panicked"
		lookUp(nil, done)
	case KindDie:
		inj.What = "its process died"
		die()
	default:
		inj.What = corrupt(s, inj.Fault)
	}
	return nil
}

// corrupt changes the rank's part of the solver's vectors, and describes the change.
func corrupt(s *krylov.State, f Fault) string {
	if len(s.P) == 0 {
		return "the rank has no rows: there is nothing to hit"
	}
	switch f.Kind {
	case KindNaN:
		v, name := s.R, "residual"
		if v == nil {
			v, name = s.P, "newest basis vector"
		}
		i := len(v) / 2
		old := v[i]
		v[i] = math.NaN()
		return fmt.Sprintf("element %d of the %s turned from %.3g to NaN", i, name, old)
	case KindBitflip:
		v, name := s.X, "solution"
		if s.R == nil { // GMRES reads the solution only at the end of a cycle
			v, name = s.P, "newest basis vector"
		}
		i := largest(v)
		old := v[i]
		v[i] = math.Float64frombits(math.Float64bits(old) ^ 1<<f.Bit)
		return fmt.Sprintf("bit %d of element %d of the %s flipped: %.3g became %.3g", f.Bit, i, name, old, v[i])
	default:
		slices.Reverse(s.P)
		for i := range s.P {
			s.P[i] = -s.P[i]
		}
		return "the rank's part of the newest basis vector came to stand in reverse, with the wrong sign"
	}
}

func largest(v []float64) int {
	best := 0
	for i := range v {
		if math.Abs(v[i]) > math.Abs(v[best]) {
			best = i
		}
	}
	return best
}

// component represents any part of a program that can fail on one rank alone.
func component() error {
	return fmt.Errorf("material of cell 4711: %w", &fs.PathError{Op: "open", Path: "steel.tbl", Err: fs.ErrNotExist})
}

// lookUp has a bug that panics.
func lookUp(table []float64, i int) float64 { return table[i] }
