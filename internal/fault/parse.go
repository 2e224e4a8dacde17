package fault

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Collectives are the operations of package mpicx that have steps.
var Collectives = []string{
	"Allgather", "AllgatherValue", "Allgatherv", "Allreduce", "AllreduceFunc", "AllreduceValue", "Alltoall", "Alltoallv", "Barrier",
	"Bcast", "BcastValue", "CartCreate", "CartSub", "Create", "Exscan", "ExscanFunc", "ExscanValue", "Fprintf", "Gather", "GatherValue", "Gatherv", "GraphCreate", "Halo",
	"Merge", "NeighborAllgather", "NeighborAllgatherv", "NeighborAlltoall", "NeighborAlltoallv", "NewHalo", "Reduce", "ReduceFunc",
	"ReduceScatter", "ReduceScatterBlock", "ReduceScatterBlockFunc", "ReduceScatterFunc", "ReduceValue",
	"Scan", "ScanFunc", "ScanValue", "Scatter", "ScatterValue", "Scatterv", "Split", "SplitShared",
}

// Protocols are what the error channel's messages are for.
var Protocols = []string{
	"revoke", "resolve", "agree", "agreefailed", "shrink", "replace", "dup", "split", "splitshared", "create", "cartcreate", "cartsub", "graphcreate",
	"createintercomm", "merge", "stop", "stopping", "background", "diagnose", "end",
}

var signals = []string{"SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGABRT", "SIGSEGV", "SIGBUS", "SIGPIPE"}

// Parse reads a plan. Its error names the first word that does not fit, its position, and what
// was expected.
func Parse(text string) (*Plan, error) {
	p := &Plan{}
	for i, line := range strings.Split(text, "\n") {
		column := 1
		for part := range strings.SplitSeq(line, ";") {
			r := reader{words: words(part, i+1, column)}
			if len(r.words) > 1 {
				s := r.statement()
				s.text = strings.Join(strings.Fields(part), " ")
				p.statements = append(p.statements, s)
			}
			if r.err != nil {
				return nil, r.err
			}
			column += len(part) + 1
		}
	}
	return p, nil
}

// A word has a line and a column, which counts bytes. An empty word ends a statement.
type word struct {
	text         string
	line, column int
}

var notBlank = regexp.MustCompile(`\S+`)

func words(text string, line, column int) (all []word) {
	for _, at := range notBlank.FindAllStringIndex(text, -1) {
		all = append(all, word{text[at[0]:at[1]], line, column + at[0]})
	}
	return append(all, word{"", line, column + len(text)})
}

// A reader takes the words of a statement one after another, until one does not fit.
type reader struct {
	words []word
	err   error
}

func (r *reader) next() word {
	w := r.words[0]
	if len(r.words) > 1 {
		r.words = r.words[1:]
	}
	return w
}

func (r *reader) fail(w word, expected string) {
	if r.err != nil {
		return
	}
	found := strconv.Quote(w.text)
	if w.text == "" {
		found = "the statement ends"
	}
	r.err = fmt.Errorf("fault plan, line %d, column %d: %s, expected %s", w.line, w.column, found, expected)
}

// one takes one of the given words.
func (r *reader) one(of ...string) string {
	w := r.next()
	if !slices.Contains(of, w.text) {
		last := len(of) - 1
		r.fail(w, strings.TrimPrefix(strings.Join(of[:last], ", ")+" or "+of[last], " or "))
	}
	return w.text
}

// maybe takes a word if it is the next one.
func (r *reader) maybe(text string) bool {
	found := r.words[0].text == text
	if found {
		r.next()
	}
	return found
}

func (r *reader) number(what string, least, most uint64) uint64 {
	w := r.next()
	n, err := strconv.ParseUint(w.text, 10, 64)
	if err != nil || n < least || n > most {
		r.fail(w, fmt.Sprintf("%s from %d to %d", what, least, most))
	}
	return n
}

func (r *reader) count(what string) int { return int(r.number(what, 1, math.MaxInt32)) }

func (r *reader) statement() (s statement) {
	verbs := []string{"must", "kill", "exit", "stop"}
	if s.must = r.maybe("must"); s.must {
		verbs = verbs[1:]
	}
	verb := r.one(verbs...)
	moments := []string{"at", "in", "random"}
	if s.any = r.maybe("any"); s.any {
		s.rank = r.count("how many")
		moments = moments[2:]
	} else {
		s.rank = int(r.number(`any, or a rank`, 0, math.MaxInt32))
	}
	s.Deed = r.deed(verb)
	switch r.one(moments...) {
	case "at":
		r.one("operation")
		s.kind, s.n = operation, r.count("its number")
	case "in":
		s.moment = r.in()
	case "random":
		r.one("seed")
		s.kind, s.seed = random, r.number("a seed", 0, math.MaxUint64)
		r.one("of")
		s.n = r.count("how many operations")
	}
	if end := r.next(); end.text != "" {
		r.fail(end, "the end of the statement")
	}
	return s
}

// deed reads how a statement is carried out.
func (r *reader) deed(verb string) (d Deed) {
	switch {
	case verb == "exit":
		r.one("with")
		r.one("status")
		d.Exits, d.Status = true, int(r.number("a status", 0, 255))
	case verb == "stop":
		r.one("for")
		w := r.next()
		var err error
		if d.Stop, err = time.ParseDuration(w.text); err != nil || d.Stop <= 0 {
			r.fail(w, "a duration such as 200ms")
		}
	case r.maybe("by"):
		d.Signal = r.one(signals...)
	}
	return d
}

func (r *reader) in() (m moment) {
	m.name = r.one(append(slices.Clone(Collectives), Protocols...)...)
	if slices.Contains(Protocols, m.name) {
		r.one("message")
		m.kind, m.n = message, r.count("its number")
		return m
	}
	r.one("step")
	m.kind, m.n = step, r.count("its number")
	if r.maybe("call") {
		m.call = r.count("its number")
	}
	return m
}
