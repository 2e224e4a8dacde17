package waiting_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// keeper is a Keeper that counts, and lends places that were used before. Functions that are nil do
// what is usual.
type keeper struct {
	waiting.Nobody
	listen func(context.Context) <-chan struct{} // what Park returns
	ended  func(context.Context) error
	decide func(context.Context) error // Verdict
	looked func()
	drive  func(s waiting.Sleeper, ended <-chan struct{}) bool // of places
	over   bool                                                // IsOver

	mu         sync.Mutex
	places     []*waiting.Place // not in use
	parked     map[*waiting.Place]bool
	watched    int
	unwatched  int
	verdict    error // not reported yet
	unresolved bool  // TryVerdict would block
	asked      int   // for verdicts
}

func (k *keeper) Look() {
	if k.looked != nil {
		k.looked()
	}
}

var _ waiting.Keeper = (*keeper)(nil)

func (k *keeper) Park(ctx context.Context) (*waiting.Place, <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var place *waiting.Place
	if n := len(k.places); n > 0 {
		place, k.places = k.places[n-1], k.places[:n-1]
	} else {
		place = waiting.NewPlace()
	}
	if k.parked == nil {
		k.parked = make(map[*waiting.Place]bool)
	}
	k.parked[place] = true
	place.Drive = k.drive
	if k.listen != nil {
		return place, k.listen(ctx)
	}
	return place, ctx.Done()
}

func (k *keeper) Unpark(place *waiting.Place) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.parked[place] {
		panic("Unpark of a place that nobody is parked in")
	}
	delete(k.parked, place)
	k.places = append(k.places, place)
}

func (k *keeper) Ended(ctx context.Context) error {
	if k.ended != nil {
		return k.ended(ctx)
	}
	return context.Cause(ctx)
}

func (k *keeper) MayHaveVerdict() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.verdict != nil || k.unresolved
}

func (k *keeper) Verdict(ctx context.Context, _ func() error) error {
	if k.decide != nil {
		return k.decide(ctx)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked++
	err := k.verdict
	k.verdict, k.unresolved = nil, false
	return err
}

func (k *keeper) TryVerdict(func() error) (bool, error) {
	k.mu.Lock()
	unresolved := k.unresolved
	k.mu.Unlock()
	if unresolved {
		return false, nil
	}
	return true, k.Verdict(bg, nil)
}

func (k *keeper) IsOver(error) bool { return k.over }

func (k *keeper) Watch()   { k.mu.Lock(); k.watched++; k.mu.Unlock() }
func (k *keeper) Unwatch() { k.mu.Lock(); k.unwatched++; k.mu.Unlock() }

func (k *keeper) report(err error) { k.mu.Lock(); k.verdict = err; k.mu.Unlock() }

// balanced checks that whatever began has ended, but for futures watched.
func (k *keeper) balanced(t *testing.T, watching int) {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	require.Empty(t, k.parked, "places not given back")
	for _, place := range k.places {
		require.False(t, place.Left(), "a wake-up that nobody waits for")
	}
	require.Equal(t, watching, k.watched-k.unwatched, "futures watched (%d) less those unwatched (%d)", k.watched, k.unwatched)
}

func kept[T any](k *keeper) (*future.Future[T], *future.Promise[T]) {
	f, p := future.New[T]()
	waiting.Of(p.Future()).Keep(k)
	return f, p
}

// commonError is an error of the whole party.
type commonError struct {
	waiting.CommonError
}

func (commonError) Error() string { return "error of another rank" }

var errCommon = commonError{}

// A keeper is told once that a future is watched, however many watch it.
func TestWatchAndUnwatchAreBalanced(t *testing.T) {
	k := new(keeper)
	f, p := kept[int](k)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() { f.Done() })
	}
	all.Wait()
	k.balanced(t, 1)
	watched := k.watched
	f.Done()
	require.Equal(t, watched, k.watched, "watched again")

	p.Complete(1, nil)
	k.balanced(t, 0)
	<-f.Done()
	k.balanced(t, 0)

	k = new(keeper)
	f, p = kept[int](k)
	p.Complete(1, nil)
	<-f.Done() // for the first time
	k.balanced(t, 0)
	require.Zero(t, k.watched, "who asks for what is done waits for nothing, and joins no round (P2)")
}

// Design rule P7: the Wait that finds its operation done and an error not yet
// reported reports the error, and the next has the result.
func TestAVerdictIsReportedAndTheResultKept(t *testing.T) {
	for _, result := range []error{nil, errOp} {
		k := new(keeper)
		f, p := kept[int](k)
		p.Complete(7, result)
		want := 7
		if result != nil {
			want = 0
		}
		ways := map[string]func() error{
			"Wait": func() error { return f.Wait(bg) },
			"Get": func() error {
				v, err := f.Get(bg)
				if waiting.IsCommon(err) {
					require.Zero(t, v)
				} else {
					require.Equal(t, want, v)
				}
				return err
			},
			"Test": func() error {
				done, err := f.Test()
				require.True(t, done)
				return err
			},
			"WaitAny": func() error {
				i, err := future.WaitAny(bg, f)
				require.Zero(t, i)
				return err
			},
			"WaitAll": func() error { return future.WaitAll(bg, f) },
		}
		for name, way := range ways {
			k.report(errCommon)
			require.Equal(t, error(errCommon), way(), name)
			require.Equal(t, result, way(), name)
		}
		require.Equal(t, len(ways), k.asked)
		k.balanced(t, 0)
	}
}

// This is so for a Wait that has blocked too, and for a panic, which is a result: it neither hides
// a verdict nor is hidden by one.
func TestAVerdictComesBeforeAPanic(t *testing.T) {
	k := new(keeper)
	f, p := kept[int](k)
	go func() {
		k.report(errCommon)
		p.Complete(0, &future.Panicked{Value: 1})
	}()
	require.Equal(t, error(errCommon), f.Wait(bg))
	require.Panics(t, func() { _ = f.Wait(bg) })
}

func TestTestDoesNotBlockForAVerdict(t *testing.T) {
	k := new(keeper)
	f, p := kept[int](k)
	k.unresolved = true
	done, err := f.Test()
	require.False(t, done)
	require.NoError(t, err)
	p.Complete(7, nil)
	done, err = f.Test()
	require.False(t, done, "the operation is done, but what to say of it is not known")
	require.NoError(t, err)

	k.mu.Lock()
	k.unresolved, k.verdict = false, errCommon
	k.mu.Unlock()
	done, err = f.Test()
	require.True(t, done)
	require.Equal(t, error(errCommon), err)
	done, err = f.Test()
	require.True(t, done)
	require.NoError(t, err)
}

// A verdict interrupts Waits. If Ended returns nil they continue, with a new Park. The operation
// stays pending in any case.
func TestAKeeperInterruptsWaits(t *testing.T) {
	for name, verdict := range map[string]error{"they end": errCommon, "they go on": nil} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { interruptWaits(t, verdict) }) })
	}
}

func interruptWaits(t *testing.T, verdict error) {
	interrupt := make(chan struct{})
	k := &keeper{listen: func(context.Context) <-chan struct{} { return interrupt }}
	k.ended = func(context.Context) error {
		k.mu.Lock()
		k.listen = nil
		k.mu.Unlock()
		return verdict
	}
	f, p := kept[int](k)
	errs := make(chan error, 5)
	for range 5 {
		go func() { errs <- f.Wait(bg) }()
	}
	synctest.Wait()
	close(interrupt)
	synctest.Wait()
	if verdict != nil {
		require.Len(t, errs, 5)
		k.balanced(t, 1)
	}
	for range len(errs) {
		require.Equal(t, verdict, <-errs)
		go func() { errs <- f.Wait(bg) }()
	}
	synctest.Wait()
	require.Empty(t, errs)
	p.Complete(7, nil)
	for range 5 {
		require.NoError(t, <-errs)
	}
	k.balanced(t, 0)
}

// An error that is over has ended an operation while its Wait asked why the context has ended.
func TestEndedWhileTheContextEnds(t *testing.T) {
	for name, wait := range map[string]func(context.Context, *future.Future[int]) error{
		"Wait":    func(ctx context.Context, f *future.Future[int]) error { return f.Wait(ctx) },
		"WaitAny": func(ctx context.Context, f *future.Future[int]) error { _, err := future.WaitAny(ctx, f); return err },
	} {
		t.Run(name, func(t *testing.T) {
			k := &keeper{over: true}
			f, p := kept[int](k)
			k.ended = func(context.Context) error {
				p.Complete(0, errCommon)
				return context.Canceled
			}
			require.Equal(t, errCommon, wait(ended(), f))
		})
	}
}
