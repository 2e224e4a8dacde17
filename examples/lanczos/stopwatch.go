package main

import "time"

// times says how a rank's time was spent, in seconds.
type times struct {
	Starting      float64 `json:"starting"`
	Computing     float64 `json:"computing"`
	Redoing       float64 `json:"redoing"`
	Checkpointing float64 `json:"checkpointing"`
	Detecting     float64 `json:"detecting"`
	Rebuilding    float64 `json:"rebuilding"`
	Reading       float64 `json:"reading"`
}

type part struct {
	name    string
	seconds float64
}

func (t *times) parts() []part {
	return []part{
		{"starting", t.Starting},
		{"computing", t.Computing},
		{"held up by checkpoints", t.Checkpointing},
		{"detection, from the last whole iteration", t.Detecting},
		{"rebuilding the communicator and the matrix", t.Rebuilding},
		{"reading back what was saved", t.Reading},
		{"redoing iterations", t.Redoing},
	}
}

func (t *times) total() (sum float64) {
	for _, p := range t.parts() {
		sum += p.seconds
	}
	return sum
}

// A stopwatch measures a rank's times.
type stopwatch struct {
	times
	last time.Time
}

func newStopwatch() *stopwatch { return &stopwatch{last: time.Now()} }

// lap adds the time since the previous lap to a total.
func (s *stopwatch) lap(what *float64) {
	now := time.Now()
	*what += now.Sub(s.last).Seconds()
	s.last = now
}
