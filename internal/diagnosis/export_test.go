package diagnosis

import "fmt"

// A State is a Machine's fields as values, without its callbacks.
type State struct {
	Number  uint64
	Dead    map[int]bool
	Surveys string // "": none
}

// State returns the machine's, to compare.
func (m *Machine) State() State {
	s := State{m.number, m.dead, ""}
	for origin := range m.size {
		if v := m.surveys[origin]; v != nil {
			s.Surveys += fmt.Sprintf("%+v", *v)
		}
	}
	return s
}
