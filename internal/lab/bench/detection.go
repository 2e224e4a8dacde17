package main

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"time"

	"github.com/mpicx/go-mpicx/internal/detector"
	"github.com/mpicx/go-mpicx/internal/sim"
)

// ring is the detector's setting: a rank is declared dead when four heartbeats are late.
var ring = detector.Config{Period: time.Millisecond, Timeout: 4 * time.Millisecond}

// detection compares the time from a death until the last survivor is told with the bound that the
// detector documents, for the latency of this run. It uses the seed that comes closest to the
// bound.
func detection(n int) func(config) result {
	return func(c config) result {
		if c.tooMany(n) {
			return skipped
		}
		var worst, bound, latency time.Duration
		closest := 0.0
		seeds := c.times(min(100, max(1, 60_000/n)))
		for seed := range seeds {
			took, l := detect(ring, n, uint64(seed))
			b := ring.Timeout + time.Duration(bits.Len(uint(n-1)))*l // see the detector's bound_test.go
			if r := float64(took) / float64(b); r > closest {
				closest, worst, bound, latency = r, took, b, l
			}
		}
		return result{samples{float64(worst)}, samples{float64(bound)}, fmt.Sprintf("the worst of %d seeds; η=%v, δ=%v, L=%v", seeds, ring.Period, ring.Timeout, latency)}
	}
}

// observed is a rank that takes part in detection.
type observed struct {
	w       *sim.World
	config  detector.Config
	rank    int
	machine *detector.Machine
	todo    []posted
	tick    time.Duration // when the next tick is scheduled
	told    func()        // of a death
	latency *time.Duration

	pinged   time.Duration // when it last sent pings
	answered map[int]bool  // ranks that have answered these
	scans    samples       // times from pings to the last answer
}

type posted struct {
	to      int
	payload []byte
}

// detect starts n ranks within a timeout. Once they are settled it kills one of them, not the last.
// The seed determines all times. It returns the time until all others have been told, and the
// longest time in between from when a message was due to be sent until it was handled.
func detect(config detector.Config, n int, seed uint64) (took, latency time.Duration) {
	rng := rand.New(rand.NewPCG(seed, 1))
	w, all := watched(config, n, rng, seed)
	survivors, last := n-1, time.Duration(0)
	for i, o := range all {
		o.latency = &latency
		o.told = func() {
			survivors--
			last = max(last, w.RankNow(i))
		}
	}
	victim := rng.IntN(n - 1)
	death := 4*config.Timeout + time.Duration(rng.Int64N(int64(config.Timeout)))
	w.KillAt(death, victim)
	for survivors > 0 && w.Step() {
	}
	if survivors > 0 {
		panic(fmt.Sprintf("%d of %d ranks are never told of the death of rank %d", survivors, n, victim))
	}
	return last - death, latency
}

// watched returns n ranks that start within one timeout.
func watched(config detector.Config, n int, rng *rand.Rand, seed uint64) (*sim.World, []*observed) {
	w := sim.New(sim.Config{Ranks: n, Seed: seed, Model: cray, Detect: func(*rand.Rand) time.Duration { return never }})
	all := make([]*observed, n)
	for i := range all {
		o := &observed{w: w, config: config, rank: i, tick: detector.Never, latency: new(time.Duration)}
		all[i] = o
		w.At(time.Duration(rng.Int64N(int64(config.Timeout))), i, func() {
			var err error
			o.machine, err = detector.New(config, i, n, w.RankNow(i))
			must(err)
			w.Comm(i).Listen(o)
			o.carryOut(w.RankNow(i))
		})
	}
	return w, all
}

// Purpose returns no text.
func (o *observed) Purpose([]byte) string { return "" }

// Next returns the next message.
func (o *observed) Next() (to int, payload []byte, ok bool) {
	if len(o.todo) == 0 {
		return 0, nil, false
	}
	m := o.todo[0]
	o.todo = o.todo[1:]
	return m.to, m.payload, true
}

// Died is never called: only the detector detects deaths.
func (o *observed) Died(int) {}

// Take takes a message, and the time when it was due, which follows it.
func (o *observed) Take(from int, payload []byte) {
	now, due := o.w.RankNow(o.rank), time.Duration(binary.LittleEndian.Uint64(payload[detector.Size:]))
	if due > o.config.Timeout { // earlier, some ranks may not have begun
		*o.latency = max(*o.latency, now-due)
	}
	msg, err := detector.Decode(payload[:detector.Size], o.w.Comm(o.rank).Size())
	must(err)
	if msg.Kind == detector.Heartbeat && o.answered != nil && !o.answered[from] {
		o.answered[from] = true
		if len(o.answered) == o.w.Comm(o.rank).Size()-1 {
			o.scans = append(o.scans, float64(now-o.pinged))
		}
	}
	must(o.machine.Step(now, from, msg))
	o.carryOut(now)
}

func (o *observed) carryOut(due time.Duration) {
	for _, out := range o.machine.Output() {
		if out.Message.Kind == 0 {
			if !o.w.Dead(out.Died) {
				panic(fmt.Sprintf("rank %d lives, and is held for dead", out.Died))
			}
			o.told()
			continue
		}
		if out.Message.Kind == detector.Ping && (o.pinged != due || o.answered == nil) {
			o.pinged, o.answered = due, make(map[int]bool)
		}
		b := detector.Encode(out.Message)
		o.todo = append(o.todo, posted{out.To, binary.LittleEndian.AppendUint64(b[:], uint64(due))})
	}
	o.w.Comm(o.rank).Poke()
	if at := o.machine.Deadline(); at < o.tick {
		o.tick = at
		o.w.At(at, o.rank, func() {
			if o.tick != at {
				return // an earlier tick is scheduled
			}
			o.tick = detector.Never
			due, now := o.machine.Deadline(), o.w.RankNow(o.rank)
			if due <= now {
				o.machine.Tick(now)
			}
			o.carryOut(due)
		})
	}
}
