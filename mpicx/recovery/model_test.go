package recovery_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/checkpoint"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
	"github.com/mpicx/go-mpicx/mpicx/recovery"
)

// A kept is what each rank of TestRandomStores saves besides x: when, where, and among whom.
type kept struct {
	Version, Attempt int
	Place            int
	Places           []int
	Notes            map[string]int
}

// vector is what a place has in a version: none, few or many elements.
func vector(place, version, attempt int) []float64 {
	x := make([]float64, []int{0, 1, 300, 7}[(place+version)%4])
	for i := range x {
		x[i] = float64(1e6*place + 1e3*version + attempt + i)
	}
	return x
}

// A model runs one random program and holds what it restores against what was saved.
type model struct {
	t        *testing.T
	seed     uint64
	survives int // as many deaths
	deaths   int // at most
	steps    int
	failures int // at each rank, at most
	inner    bool

	mu    sync.Mutex
	acked int // the newest version of which a rank knows that it counts
}

// A player is one rank of a model.
type player struct {
	*model
	own  *rand.Rand
	left int
	once []int
	x    []float64
	it   kept
}

// hurried returns ctx, or one that has ended or is about to.
func (p *player) hurried(ctx context.Context) (context.Context, context.CancelFunc) {
	if p.left == 0 || p.own.IntN(15) > 0 {
		return ctx, func() {}
	}
	p.left--
	return context.WithTimeout(ctx, time.Duration(p.own.IntN(100))*time.Microsecond)
}

func (p *player) fail() error {
	if p.own.IntN(8) == 0 {
		time.Sleep(time.Duration(p.own.IntN(100)) * time.Microsecond)
	}
	if p.left == 0 || p.own.IntN(10) > 0 {
		return nil
	}
	p.left--
	err := errors.New("fails")
	if p.own.IntN(2) == 0 {
		mpicx.Throw(err)
	}
	return err
}

func (p *player) attempt(ctx context.Context, a *recovery.Attempt) error {
	c, me := a.Comm, a.Place(a.Comm.Rank())
	p.x, p.it, p.once = nil, kept{}, []int{me, 42}
	a.Store.Protect("x", &p.x)
	if p.own.IntN(2) == 0 || a.N == 0 { // in any order
		a.Store.Protect("it", &p.it)
		a.Store.Protect("once", &p.once, checkpoint.Once)
	} else {
		a.Store.Protect("once", &p.once, checkpoint.Once)
		a.Store.Protect("it", &p.it)
	}
	p.mu.Lock()
	acked := p.acked
	p.mu.Unlock()
	if err := p.fail(); err != nil {
		return err
	}
	from, err := p.restore(ctx, a, acked)
	if err != nil {
		return err
	}
	if p.inner {
		if err := p.level(ctx, c); err != nil {
			return err
		}
	}
	places := make([]int, c.Size())
	for r := range places {
		places[r] = a.Place(r)
	}
	p.once = []int{me, 42}
	for v := from + 1; v <= p.steps; v++ {
		p.x = append(p.x[:0], vector(me, v, a.N)...)
		p.it = kept{v, a.N, me, places, map[string]int{"v": v, fmt.Sprint(me): v}}
		hurried, cancel := p.hurried(ctx)
		defer cancel()
		f := a.Store.Save(hurried, v)
		for i := range p.x {
			p.x[i] = -1
		}
		p.it.Notes["v"] = -1
		if err := p.fail(); err != nil {
			return err
		}
		if p.own.IntN(3) == 0 {
			if err := f.Wait(hurried); err != nil {
				return err
			}
			p.mu.Lock()
			p.acked = max(p.acked, v)
			p.mu.Unlock()
		}
		if err := p.fail(); err != nil {
			return err
		}
	}
	return nil
}

// level is an inner Run, on half of the ranks.
func (p *player) level(ctx context.Context, c *mpicx.Comm) error {
	half := c.Split(c.Rank()%2, 0).MustGet(ctx)
	return recovery.Run(ctx, half, func(ctx context.Context, a *recovery.Attempt) error {
		if err := p.fail(); err != nil {
			return err
		}
		sum, one := make([]int, 1), []int{1}
		mpicx.Allreduce(a.Comm, one, sum, mpicx.Sum).MustWait(ctx)
		require.Equal(p.t, a.Comm.Size(), sum[0])
		return p.fail()
	}, recovery.Shrink(), recovery.MaxAttempts(1000))
}

func (p *player) restore(ctx context.Context, a *recovery.Attempt, acked int) (int, error) {
	c, t := a.Comm, p.t
	hurried, cancel := p.hurried(ctx)
	defer cancel()
	v, err := a.Store.Restore(hurried)
	lost, isLost := errors.AsType[*checkpoint.LostError](err)
	parts, noPart := errors.AsType[*checkpoint.PartsError](err)
	attempt, have := -1, 0
	switch {
	case errors.Is(err, checkpoint.ErrNone):
		v = 0
	case isLost:
		require.Greater(t, p.deaths, p.survives, "%v", lost)
		v = -1
	case noPart:
		v = parts.Version
	case err != nil:
		return 0, err
	default:
		attempt, have = p.it.Attempt, 1
		require.Equal(t, v, p.it.Version)
		require.Equal(t, a.Place(c.Rank()), p.it.Place)
		require.Equal(t, vector(p.it.Place, v, attempt), append([]float64{}, p.x...))
		require.Equal(t, []int{p.it.Place, 42}, p.once)
		require.Equal(t, map[string]int{"v": v, fmt.Sprint(p.it.Place): v}, p.it.Notes)
	}
	all := make([]int, 3*c.Size())
	if err := mpicx.Allgather(c, []int{v, attempt, have}, all).Wait(ctx); err != nil {
		return 0, err
	}
	for i := 0; i < len(all); i += 3 {
		require.Equal(t, v, all[i], "versions: %v", all)
		if all[i+2] == 1 && have == 1 {
			require.Equal(t, attempt, all[i+1], "of attempts: %v", all)
		}
		attempt = max(attempt, all[i+1])
	}
	if p.deaths <= p.survives {
		require.GreaterOrEqual(t, v, acked, "a version that counted is forgotten")
	}
	if v <= 0 {
		return 0, nil
	}
	return v, p.load(ctx, a, v, attempt)
}

// load has each rank read somebody's part, or none.
func (p *player) load(ctx context.Context, a *recovery.Attempt, v, attempt int) error {
	places := mpicx.AllgatherValue(a.Comm, p.it.Places).MustGet(ctx)
	for _, it := range places {
		if it != nil {
			p.it.Places = it
		}
	}
	if err := p.fail(); err != nil {
		return err
	}
	part := p.own.IntN(len(p.it.Places)+1) - 1
	hurried, cancel := p.hurried(ctx)
	defer cancel()
	x, err := checkpoint.Load[float64](hurried, a.Store, "x", part, v)
	if err != nil {
		return err
	}
	if part >= 0 {
		require.Equal(p.t, vector(p.it.Places[part], v, attempt), append([]float64{}, x...), "part %d of version %d", part, v)
	}
	it, err := checkpoint.LoadValue[kept](ctx, a.Store, "it", part, v)
	if err == nil && part >= 0 {
		require.Equal(p.t, p.it.Places[part], it.Place)
		require.True(p.t, maps.Equal(it.Notes, map[string]int{"v": v, fmt.Sprint(it.Place): v}))
	}
	return err
}

// TestRandomStores has programs that save fail and die anywhere, rescues and spares, too: what
// they restore is what they have saved, of one version, whoever reads it.
func TestRandomStores(t *testing.T) {
	rnd := seeded(t)
	runs := 500
	if testing.Short() {
		runs = 200
	}
	deaths := 0
	for run := range runs {
		n, spares := 2+rnd.IntN(5), 0
		k := 1 + rnd.IntN(2)
		var plan []string
		repair := []recovery.Option{recovery.MaxAttempts(1000)}
		if mpicx.Backend == "ulfm" {
			spares = rnd.IntN(4)
			for _, r := range rnd.Perm(n + spares)[:rnd.IntN(n)] {
				plan = append(plan, fmt.Sprintf("kill %d at operation %d", r, 1+rnd.IntN(1+rnd.IntN(400))))
			}
			repair = append(repair, recovery.Replace(), recovery.ElseShrink())
		}
		opt := []checkpoint.Option{checkpoint.Partner(k), checkpoint.RS(1+rnd.IntN(3), k)}[rnd.IntN(2)]
		if rnd.IntN(4) == 0 {
			k, opt = 100, checkpoint.Dir(t.TempDir(), checkpoint.Every(1))
		}
		m := &model{t: t, seed: rnd.Uint64(), survives: min(k, n-1), deaths: len(plan), steps: 1 + rnd.IntN(8), failures: rnd.IntN(3), inner: rnd.IntN(3) == 0}
		program := func(ctx context.Context, world *mpicx.Comm) error {
			p := &player{model: m, left: m.failures, own: rand.New(rand.NewPCG(m.seed, uint64(100*world.Rank()+world.Incarnation())))}
			return recovery.Run(ctx, world, p.attempt, append(repair, recovery.Checkpoint(opt))...)
		}
		if len(plan) == 0 {
			mpicxtest.RunWith(t, n, program, mpicx.WithSpares(spares))
		} else {
			deaths += len(mpicxtest.RunFaults(t, n, strings.Join(plan, ";"), program, mpicx.WithSpares(spares)))
		}
		if t.Failed() {
			t.Fatalf("run %d: n %d, spares %d, k %d, %s, inner %v", run, n, spares, k, plan, m.inner)
		}
	}
	t.Logf("%d deaths", deaths)
}
