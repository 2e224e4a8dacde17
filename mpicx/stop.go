package mpicx

import (
	"cmp"
	"context"
	"maps"
	"os"
	"runtime"
	"slices"
	"sync"
	"syscall"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/ledger"
	"github.com/mpicx/go-mpicx/internal/machine"
	"github.com/mpicx/go-mpicx/internal/observe"
	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/stop"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// onlyStop returns one of the errors of ranks if all are StopErrors, or nil.
func onlyStop(errs map[int]error) (err error) {
	for _, r := range slices.Sorted(maps.Keys(errs)) {
		s := stopIn(errs[r])
		if s == nil {
			return nil
		}
		s.elsewhere = s.elsewhere && len(errs) == 1 // otherwise all ranks are in this process
		err = cmp.Or(err, errs[r])
	}
	return err
}

// WithStop has signals ask for a stop, as [Comm.Stop] does, on the world and all communicators made
// from it; see [Comm.Stopping]. Without arguments the signal is SIGTERM. Several such signals
// within a second are one request. One that comes later ends the process as if the program did not
// catch it; under mpicxrun, which then ends the job, it does nothing. In a program that calls
// Stopping nowhere the signals do nothing else.
func WithStop(signals ...os.Signal) Option {
	if len(signals) == 0 {
		signals = []os.Signal{syscall.SIGTERM}
	}
	return func(o *options) {
		o.stopSignals = signals
		if slices.Contains(signals, nil) || slices.Contains(signals, os.Signal(syscall.SIGKILL)) {
			o.err = mpiErrorf("Run", ClassOther, "WithStop(%v), expected signals that can be caught, such as os.Interrupt", signals)
		}
	}
}

// A stopWatch asks for a stop when one of the signals of WithStop comes. If the process has no rank
// by then, it asks as soon as there is one.
type stopWatch struct {
	end func()

	mu    sync.Mutex     // protects the fields below
	came  syscall.Signal // not asked for yet; 0: none
	roots []*comm        // the first communicators of the ranks of this process
}

// watchStops begins to watch. The caller ends it by end.
func (o *options) watchStops() *stopWatch {
	w := &stopWatch{end: func() {}}
	if len(o.stopSignals) > 0 && !inBubble() {
		// mpicxrun ends a job on its second signal.
		w.end = stop.Watch(o.stopSignals, machine.Processes() == 0, func(s os.Signal) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.came, _ = s.(syscall.Signal)
			w.ask()
		})
	}
	return w
}

// add adds a rank of this process, given its first communicator.
func (w *stopWatch) add(root *comm) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.roots = append(w.roots, root)
	w.ask()
}

// ask asks for a stop if a signal has come. The caller holds mu.
func (w *stopWatch) ask() {
	for _, c := range w.roots {
		if w.came != 0 && !c.proc.dead.Load() && c.proc.stage.Load() < stageEnded {
			c.askToStop(&stop.Request{Rank: c.worldRank(c.rank), Signal: w.came})
			w.came = 0
		}
	}
}

// Stop asks for a stop of all ranks of c, for the reason why: at one of the next calls of
// [Comm.Stopping], on c or on a communicator made from it, by now or later, all of them get a
// [StopError]. Any rank may call Stop, at any time, and more than once. It is not collective and
// waits for nobody. The request stays through errors and repairs: it also holds for what Shrink and
// Replace make of c.
func (c *Comm) Stop(ctx context.Context, why error) error {
	switch err := c.ready("Stop", ctx); {
	case err != nil:
		return err
	case why == nil:
		return mpiErrorf("Stop", ClassOther, "nil error, expected the reason")
	case c.isClosed():
		return mpiErrorf("Stop", ClassComm, "%s is closed", c.name)
	}
	c.proc.exitIfDead()
	c.askToStop(&stop.Request{Generation: c.ledger.Generation(), Rank: c.worldRank(c.rank), Why: cut(why.Error(), stop.MaxWhy)})
	return nil
}

// askToStop notes the request on c and all communicators derived from it. It sends the request on c
// and those on which the program calls Stopping. The others send it in their next call.
func (c *comm) askToStop(q *stop.Request) {
	for _, d := range c.hearStop(q) {
		if d == c || d.stopCalls() > 0 {
			d.sendStop()
		}
	}
}

// sendStop sends the request to all ranks of c, once. Asked hears it at this rank, too.
func (c *comm) sendStop() {
	s := c.stopping.Load()
	if !locked(&s.mu, func() bool { return s.asked }) {
		c.channel.Ask(stop.Tally{Request: s.request}.Encode())
	}
}

// Asked says that a rank has asked for a stop. The channel passes the request on by itself.
func (l *listener) Asked(request []byte) {
	c := (*comm)(l)
	q := stop.Decode(request).Request
	on := c // or the ancestor on which the request was made, which this rank may hear later
	for on.parent != nil && on.ledger.Generation() > q.Generation {
		on = on.parent
	}
	on.hearStop(&q)
	c.hearStop(&q) // also if it is closed, and in no family any more
	s := c.stopping.Load()
	s.mu.Lock()
	s.asked = true
	s.mu.Unlock()
	c.decideStop(s, 0)
	c.proc.observer.Happened(observe.Event{Kind: observe.Stop, Comm: c.name, By: &q.Rank, Text: stopErrorOf(q).Error()})
}

func stopErrorOf(q stop.Request) *StopError {
	e := &StopError{Rank: q.Rank, Why: q.Why}
	if q.Signal != 0 {
		e.Signal = q.Signal
	}
	return e
}

// Stopping says whether the ranks of c are to stop. All ranks call it equally often since c was
// made or its last error, typically once a step. It returns nil until somebody has asked for a
// stop, by [Comm.Stop] or a signal: see [WithStop]. Then it returns a *[StopError] at all ranks in
// the same call, the first that no rank has made by then. No rank returns it before all have come
// to that call. So an error that a rank raises before is told to all instead, and the stop comes
// with the calls after the error.
//
// Stopping is collective: once a stop was asked for, it may wait for other ranks. Until then it
// costs one atomic operation and no message. It returns an error of the communicator as a Wait
// does. Such a call does not count, nor does one that ends by its context. After a StopError all
// further calls return it, until there is an error.
func (c *Comm) Stopping(ctx context.Context) error {
	if ctx != nil && c != nil && c.stops.Add(1) > 0 && !c.ledger.NeedsLook() {
		return nil
	}
	if err := c.ready("Stopping", ctx); err != nil {
		return err
	}
	if c.isClosed() {
		return mpiErrorf("Stopping", ClassComm, "%s is closed", c.name)
	}
	c.proc.exitIfDead()
	c.notInReduction("begins", "Stopping")
	err := c.interrupted(ctx, "Stopping", ofOperation("Stopping", c.verdict(ctx)))
	if err == nil && c.stops.Load() < 0 {
		err = c.stopHere(ctx)
	}
	if err != nil && stopIn(err) == nil {
		c.uncountStop()
	}
	runtime.KeepAlive(c) // the program uses it until then: see dropped
	return err
}

// uncountStop takes a call of Stopping back. If the number is 0, the epoch has changed since.
func (c *comm) uncountStop() {
	for {
		n := c.stops.Load()
		if n&^stopAsked == 0 || c.stops.CompareAndSwap(n, n-1) {
			return
		}
	}
}

// stopHere ends a call of Stopping after a request.
func (c *comm) stopHere(ctx context.Context) error {
	s := c.stopping.Load()
	decision := c.decideStop(s, 1)
	c.sendStop()
	decided, err := decision.Get(ctx)
	if err != nil || uint64(c.stopCalls()) <= decided.Calls {
		return err
	}
	meeting := c.meetToStop(s)
	if meeting == nil {
		return nil
	}
	if err := meeting.Wait(ctx); err != nil {
		return err
	}
	stop := stopErrorOf(decided.Request)
	stop.elsewhere = c.rank != 0
	return stop
}

// decideStop begins the decision in which call the ranks stop, if this rank has not begun it in
// this epoch. It contributes the number of calls so far without those that wait, present. The tally
// of all has the greatest number. The ranks begin it in different places of their programs, so its
// messages are apart from those of other collective operations.
func (c *comm) decideStop(s *stopping, present int64) *future.Future[stop.Tally] {
	epoch := c.t.Epoch() // before the number of calls: advance sets that to 0 first
	made := max(0, c.stopCalls()-present)
	s.mu.Lock()
	if s.decision != nil && s.epoch >= epoch { // a later one: an error has come since epoch was read
		defer s.mu.Unlock()
		return s.decision
	}
	decision, end := future.New[stop.Tally]()
	waiting.Of(decision).Keep(&keeper{comm: c, call: "Stopping", mode: ledger.Take})
	s.epoch, s.decision, s.meeting = epoch, decision, nil
	s.mu.Unlock() // Start may complete operations of other ranks, and call their clients
	tally := collective.Reduction{Recv: stop.Tally{Calls: uint64(made), Request: s.request}.Encode(), Op: stop.Combine, Element: stop.Size}
	x := &collective.Exchange{Name: "Stopping", Signature: stoppingCall}
	x.Start(c.t, epoch, transport.AgreementTag(0), c.chooser.ByMessages().Allreduce(nil, &tally), ender(func(err error) {
		end.Complete(stop.Decode(tally.Recv), c.failure("Stopping", err))
	}))
	return decision
}

// stopAnew begins the decision anew, in a new epoch.
func (c *comm) stopAnew() {
	if s := c.stopping.Load(); s != nil && !c.isBroken() {
		if locked(&s.mu, func() bool { return s.asked }) {
			c.decideStop(s, 0)
		}
	}
}

// meetToStop begins the agreement that all ranks return the StopError, if this rank has not begun
// it in this epoch. It returns nil if another goroutine was told of an error since the decision.
func (c *comm) meetToStop(s *stopping) *future.Future[struct{}] {
	epoch, err := c.begin("Stopping")
	if err != nil {
		return failed[struct{}](c, err)
	}
	s.mu.Lock()
	meeting := s.meeting
	if s.epoch != epoch || meeting != nil {
		s.mu.Unlock()
		return meeting
	}
	f, end := begins[struct{}](c, "Stopping", ledger.Take)
	s.meeting = f
	s.mu.Unlock()
	by := c.agreements()
	by.Propose(by.Reserve(epoch, errchan.Stopping), errchan.Proposal{Call: errchan.Stopping, Flag: -1}, func(d *errchan.Decision, err error) {
		end(struct{}{}, c.outcome("Stopping", errchan.Stopping, d, err))
	})
	return f
}

var stoppingCall = call{Kind: signature.Stopping}.Word()
