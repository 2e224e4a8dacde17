package checkpoint

import (
	"slices"
	"time"
)

// Stats are what a store has done at this rank, and what it costs.
type Stats struct {
	Saves    int           // calls of Save
	Versions int           // versions that counted
	Files    int           // files written, of versions that counted
	Restores int           // Restores that set the variables
	Memory   int64         // bytes that the versions use now
	Sent     int64         // bytes sent to other ranks for Saves, and to replace lost copies
	Fetched  int64         // bytes received for Restores and Loads of lost parts
	Held     time.Duration // time that the program spent in Save
}

// Stats returns what the store has done so far, those that it came from by Rejoin included. It may
// be called at any time.
func (s *Store) Stats() Stats {
	if s == nil {
		panic(nilStore("Stats").Error())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats
}

func (s *Store) count(change func(*Stats)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.stats)
}

// memory returns the number of bytes of the slots. Data that two slots share count once.
func (s *Store) memory() (n int64) {
	var seen []*blob
	for _, o := range s.slots {
		for _, b := range o.blobs {
			if b != nil && !slices.Contains(seen, b) {
				seen = append(seen, b)
				n += b.bytes()
			}
		}
	}
	return n
}
