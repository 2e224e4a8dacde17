package waiting

// Left says whether a wake-up is left in a place: then the next Wait there would end at once.
func (p *Place) Left() bool { return len(p.wake) > 0 }
