package fault

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The kinds of faults.
const (
	KindNaN     = "nan"
	KindBitflip = "bitflip"
	KindSkew    = "skew"
	KindError   = "error"
	KindPanic   = "panic"
	KindDie     = "die"
)

var kinds = []string{KindNaN, KindBitflip, KindSkew, KindError, KindPanic, KindDie}

// DefaultBit is in the exponent. Flipping it multiplies numbers from 2⁻³¹ to 2 by 2⁻³², and other
// numbers by 2³² or 2⁻³².
const DefaultBit = 57

// A Fault happens once at its rank: after the iteration Iter, or in the middle of a recovery.
type Fault struct {
	Kind     string `json:"kind"`
	Rank     int    `json:"rank"`
	Iter     int    `json:"iter"`
	Recovery int    `json:"recovery,omitempty"` // 1: the first; 0: Iter says when
	Bit      int    `json:"bit"`                // for bitflip
}

// EndsRank reports whether the fault ends the rank.
func (f Fault) EndsRank() bool { return f.Kind == KindPanic || f.Kind == KindDie }

// When says when the fault happens.
func (f Fault) When() string {
	if f.Recovery > 0 {
		return fmt.Sprintf("in recovery %d", f.Recovery)
	}
	return fmt.Sprintf("after iteration %d", f.Iter)
}

func (f Fault) String() string {
	s := fmt.Sprintf("rank=%d,iter=%d,kind=%s", f.Rank, f.Iter, f.Kind)
	if f.Recovery > 0 {
		s = fmt.Sprintf("rank=%d,recovery=%d,kind=%s", f.Rank, f.Recovery, f.Kind)
	}
	if f.Kind == KindBitflip && f.Bit != DefaultBit {
		s += fmt.Sprintf(",bit=%d", f.Bit)
	}
	return s
}

// Parse parses "rank=3,iter=40,kind=nan", in any order.
func Parse(spec string) (Fault, error) {
	f := Fault{Bit: DefaultBit}
	seen := make(map[string]bool)
	for field := range strings.SplitSeq(spec, ",") {
		key, value, ok := strings.Cut(field, "=")
		if !ok {
			return Fault{}, fmt.Errorf("%q, expected key=value", field)
		}
		if seen[key] {
			return Fault{}, fmt.Errorf("%s twice, expected it once", key)
		}
		seen[key] = true
		var err error
		switch key {
		case "rank":
			f.Rank, err = number(key, value, 0, 1<<30)
		case "iter":
			f.Iter, err = number(key, value, 1, 1<<30)
		case "recovery":
			f.Recovery, err = number(key, value, 1, 1<<30)
		case "bit":
			f.Bit, err = number(key, value, 0, 63)
		case "kind":
			f.Kind = value
			if !slices.Contains(kinds, value) {
				err = fmt.Errorf("kind %q, expected %s or %s", value, strings.Join(kinds[:len(kinds)-1], ", "), kinds[len(kinds)-1])
			}
		default:
			err = fmt.Errorf("key %q, expected rank, iter, recovery, kind or bit", key)
		}
		if err != nil {
			return Fault{}, err
		}
	}
	seen["iter or recovery"] = seen["iter"] || seen["recovery"]
	for _, key := range []string{"rank", "iter or recovery", "kind"} {
		if !seen[key] {
			return Fault{}, fmt.Errorf("no %s, expected rank=R,iter=I,kind=K", key)
		}
	}
	if seen["recovery"] && seen["iter"] {
		return Fault{}, fmt.Errorf("iter=%d and recovery=%d, expected one of them", f.Iter, f.Recovery)
	}
	if seen["recovery"] && f.Kind != KindError && !f.EndsRank() {
		return Fault{}, fmt.Errorf("recovery with kind %q, expected it with error, panic or die only", f.Kind)
	}
	if seen["bit"] && f.Kind != KindBitflip {
		return Fault{}, fmt.Errorf("bit with kind %q, expected it with bitflip only", f.Kind)
	}
	return f, nil
}

func number(key, value string, least, most int) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil || n < least || n > most {
		if slices.Contains([]string{"rank", "iter", "recovery"}, key) {
			return 0, fmt.Errorf("%s %q, expected a number from %d", key, value, least)
		}
		return 0, fmt.Errorf("%s %q, expected a number from %d to %d", key, value, least, most)
	}
	return n, nil
}
