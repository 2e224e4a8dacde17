package ulfmbackend

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mpicx/go-mpicx/internal/errchan"
)

// Waiting says what the open round and the agreements wait for. It is empty if there is
// neither.
func (m *Machine) Waiting() string {
	var all []string
	if s := m.stream(Errors); m.notices.open {
		all = append(all, fmt.Sprintf("error round %d waits for %s", s.id.Seq, m.missing(Errors)))
	}
	for _, k := range []Stream{Repairs, Creations} {
		if s := m.stream(k); s.joined && !m.left && !(k == Creations && m.abandoned) {
			all = append(all, fmt.Sprintf("%v waits for %s", s.value.Calls, m.missing(k)))
		}
	}
	if len(m.proposed) > 0 {
		all = append(all, "a later agreement waits for one that this rank has reserved")
	}
	return strings.Join(all, "; ")
}

func (m *Machine) missing(k Stream) string {
	var names []string
	s := m.stream(k)
	if !s.joined {
		names = append(names, "this rank to join")
	}
	for c := range m.eachChild {
		if !slices.Contains(s.heard, c) {
			names = append(names, errchan.OneOf(c, min(c+c&-c, m.size)-1))
		}
	}
	if s.sent {
		names = append(names, "the decision")
	}
	return strings.Join(names, ", ")
}
