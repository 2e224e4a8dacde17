package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/mpicx/go-mpicx/internal/diagnosis"
	"github.com/mpicx/go-mpicx/internal/observe"
)

// columns are the kinds of events that have a column in a table. By the first six a rank is told of
// the error.
var columns = []observe.Kind{
	observe.Death, observe.Revoke, observe.Notice, observe.Join, observe.Verdict, observe.Epoch,
	observe.Shrink, observe.Start, observe.Replace, observe.Restore,
}

// writeText prints what happened, when, and at which ranks.
func writeText(w io.Writer, r *run) error {
	p := bufio.NewWriter(w) // keeps the first error until Flush
	rescues := plural(r.kind(r.rescue()), r.rescue())
	fmt.Fprintf(p, "%s, %s, on %s, from %s\n", plural(r.kind(""), "rank"), rescues, plural(len(r.machines), "machine"), r.begin.Format("2006-01-02 15:04:05.000000"))
	for _, n := range r.notes {
		fmt.Fprintln(p, n)
	}
	all := r.incidents()
	if len(all) == 0 {
		fmt.Fprintln(p, "no errors")
	}
	for i, t := range all {
		fmt.Fprintf(p, "\nerror %d, %s after the beginning: %s\n", i+1, unitOf(float64(t.begin)).String(float64(t.begin)), t.summary())
		for _, text := range t.texts() {
			fmt.Fprintf(p, "  %s\n", text)
		}
		t.table(p)
	}
	if i := slices.IndexFunc(r.events, func(e event) bool { return e.Kind == observe.Stop }); i >= 0 {
		fmt.Fprintf(p, "\n%s, at rank %d", r.events[i].Text, r.events[i].Rank)
	}
	for _, e := range r.events {
		if e.Kind == observe.End && e.Text != "" {
			fmt.Fprintf(p, "\nrank %d has ended by an error: %s", e.Rank, e.Text)
		}
	}
	fmt.Fprintln(p)
	return p.Flush()
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// summary returns the incident in one line.
func (t *incident) summary() string {
	var dead, faulty []int
	var death *event // the first that a rank was told of
	how := ""
	for _, e := range t.events {
		switch e.Kind {
		case observe.Dies:
			dead = append(dead, e.Rank)
		case observe.Death:
			death = cmp.Or(death, &e)
		case observe.Fault:
			if !e.follows && !slices.Contains(faulty, e.Rank) { // on several communicators
				faulty = append(faulty, e.Rank)
			}
		case observe.Replace:
			how = ", and a " + t.run.rescue() + " takes its place"
			if len(dead) > 1 {
				how = ", and " + t.run.rescue() + "s take their places"
			}
		case observe.Shrink:
			how = ", and the others continue"
		}
	}
	if len(dead) == 0 && death == nil {
		how = "" // only a repair after a death says how the others continue
	}
	slices.Sort(dead)
	slices.Sort(faulty)
	var parts []string
	say := func(ranks []int, one, more string) {
		switch len(ranks) {
		case 0:
		case 1:
			parts = append(parts, diagnosis.Name(ranks)+one)
		default:
			parts = append(parts, diagnosis.Name(ranks)+more)
		}
	}
	say(dead, " dies", " die")
	say(faulty, " raises an error", " raise errors")
	switch {
	case len(parts) > 0:
		return strings.Join(parts, ", ") + how
	case death == nil:
		return fmt.Sprintf("%s at rank %d", t.events[0].Kind, t.events[0].Rank)
	case t.run.ended(*death.By):
		return fmt.Sprintf("rank %d has ended and another rank needs it%s", *death.By, how)
	}
	return fmt.Sprintf("rank %d has died%s", *death.By, how)
}

// texts returns the errors that ranks were told, each once.
func (t *incident) texts() (all []string) {
	known := make(map[string]bool)
	for _, e := range t.events {
		text := ""
		switch {
		case e.Kind == observe.Dies && e.Text != "":
			text = fmt.Sprintf("rank %d: %s", e.Rank, e.Text)
		case e.Kind == observe.Fault && !e.follows:
			text = fmt.Sprintf("rank %d raises on %s: %s", e.Rank, e.Comm, e.Text)
		case e.Kind == observe.Verdict:
			text = fmt.Sprintf("verdict on %s: %s", e.Comm, e.Text)
		}
		if text != "" && !known[text] {
			known[text] = true
			all = append(all, text)
		}
	}
	return all
}

// table prints a row for each rank: when it had the first event of each kind, after the fault.
func (t *incident) table(p io.Writer) {
	w := tabwriter.NewWriter(p, 0, 0, 2, ' ', tabwriter.AlignRight)
	used := slices.DeleteFunc(slices.Clone(columns), func(c observe.Kind) bool {
		return !slices.ContainsFunc(t.ranks, func(k *rank) bool { _, found := t.at(k.id, c); return found })
	})
	fmt.Fprint(w, "µs after the fault\t")
	for _, c := range used {
		fmt.Fprintf(w, "%s\t", c)
	}
	fmt.Fprint(w, "first operation after\t\n")
	for _, k := range t.ranks {
		fmt.Fprintf(w, "%v\t", k)
		none, end := "–", "–"
		if t.died(k.id) {
			none, end = "", "dead"
		} else if o, found := t.after[k.id]; found {
			end = micros(o.begin-t.begin) + ", " + o.name
		}
		for _, c := range used {
			text := none
			if at, found := t.at(k.id, c); found {
				text = micros(at)
			}
			fmt.Fprintf(w, "%s\t", text)
		}
		fmt.Fprintf(w, "%s\t\n", end)
	}
	_ = w.Flush() // p keeps the error
}
