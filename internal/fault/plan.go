package fault

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Plan says which ranks die, and when, in one run of a job. The zero Plan kills none.
type Plan struct {
	statements []statement

	// Carry does to the calling process what the statement with this index says, and returns if
	// the process survives. If Carry is nil, ranks are goroutines and die by their transport.
	Carry func(statement int, d Deed)

	// Counting says that ranks to which the plan does nothing are wrapped too, for Operations.
	Counting bool

	mu      sync.Mutex
	victims map[int]*victim // ranks that Wrap has wrapped
	carried []carried       // the statements that have been carried out
}

// carried is a statement, by its index, that has been carried out at a rank.
type carried struct{ statement, rank int }

// A kind says what the number of a statement counts.
type kind uint8

const (
	operation kind = iota
	step
	message
	random
)

type statement struct {
	text string // in the language, with single blanks
	must bool   // the test fails if it is not carried out
	Deed
	any  bool // rank says how many die
	rank int
	moment
	seed uint64
}

// A Deed is what a statement does to a rank. The zero Deed kills it. Others need ranks that are
// processes.
type Deed struct {
	Signal string // the rank is killed by this signal
	Exits  bool   // the rank exits with Status
	Status int
	Stop   time.Duration // the rank is stopped for this long, and does not die
}

// A moment is when a rank dies, or what a rank is about to do.
type moment struct {
	kind kind
	name string // of the collective or protocol
	n    int    // operation, step or message; of random: how many to draw from
	call int    // 0: any
}

// comes says whether now is the moment m.
func (m moment) comes(now moment) bool {
	if m.call == 0 {
		now.call = 0
	}
	return m == now
}

// String returns the plan in its language.
func (p *Plan) String() string {
	texts := make([]string, len(p.statements))
	for i, s := range p.statements {
		texts[i] = s.text
	}
	return strings.Join(texts, "; ")
}

// Deadly reports whether a rank may die by the plan.
func (p *Plan) Deadly() bool {
	return slices.ContainsFunc(p.statements, func(s statement) bool { return s.Stop == 0 })
}

// OfProcesses returns an error if the plan does something that can be done only to processes.
func (p *Plan) OfProcesses() error {
	for _, s := range p.statements {
		if s.Deed != (Deed{}) {
			return fmt.Errorf("fault plan: %q: ranks are goroutines, and this is for processes", s.text)
		}
	}
	return nil
}

// Fits returns an error if the plan kills ranks that a job of this size does not have, or more
// ranks than it has.
func (p *Plan) Fits(ranks int) error {
	for _, s := range p.statements {
		switch {
		case s.any && s.rank > ranks:
			return fmt.Errorf("fault plan: %q: %d ranks, expected %d at most", s.text, s.rank, ranks)
		case !s.any && s.rank >= ranks:
			return fmt.Errorf("fault plan: %q: rank %d, expected 0 to %d", s.text, s.rank, ranks-1)
		}
	}
	return nil
}

// of returns the moment at which s is carried out at a rank of a job of this size, and whether
// there is one.
func (s statement) of(rank, size int) (moment, bool) {
	if s.any {
		drawn := rand.New(rand.NewPCG(s.seed, uint64(size))).Perm(size)
		if !slices.Contains(drawn[:min(s.rank, size)], rank) {
			return moment{}, false
		}
	} else if s.rank != rank {
		return moment{}, false
	}
	if s.kind == random {
		// Each victim draws for itself. The second word of the seed differs from the one above.
		k := 1 + rand.New(rand.NewPCG(s.seed, ^uint64(rank))).IntN(s.n)
		return moment{kind: operation, n: k}, true
	}
	return s.moment, true
}

// Killed returns the goroutine ranks that have died by the plan, in ascending order.
func (p *Plan) Killed() (ranks []int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for rank, v := range p.victims {
		if v.dead.Load() {
			ranks = append(ranks, rank)
		}
	}
	slices.Sort(ranks)
	return ranks
}

// Note records that the statement with this index has been carried out at a rank.
func (p *Plan) Note(statement, rank int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.carried = append(p.carried, carried{statement, rank})
}

// A Missed is a statement with "must" that has not been carried out at one of its ranks.
type Missed struct {
	Statement string
	Rank      int
}

// Missed returns what the plan had to do in a job of this many ranks, and has not done.
func (p *Plan) Missed(ranks int) (all []Missed) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, s := range p.statements {
		for rank := range ranks {
			if _, dies := s.of(rank, ranks); dies && s.must && !slices.Contains(p.carried, carried{i, rank}) {
				all = append(all, Missed{s.text, rank})
			}
		}
	}
	return all
}
