package diagnosis

import (
	"fmt"
	"iter"
	"strings"

	"github.com/mpicx/go-mpicx/internal/record"
	"github.com/mpicx/go-mpicx/internal/signature"
)

// A Reader appends the latest calls of a rank to a slice. Complete says that the rank has made no
// others before. The calls may be anything.
type Reader func(rank int, calls []record.Call) (latest []record.Call, complete bool)

// before is how many calls Calls shows before the first that differs.
const before = 2

// Calls compares the calls of ranks on a communicator in an epoch, or in a newer one that is in
// their records. It returns a line for the first call in which they differ, with a mark, after
// lines for the calls before it. The ranks differ if they have made different calls, or some have
// not made one that others have. Calls returns nil if they do not differ.
//
// It reads the records several times, because there may be very many ranks, which may make calls
// meanwhile. So they differ only if they differ in the same call when all has been read.
func Calls(ranks []int, comm uint64, epoch uint32, name string, read Reader) (lines []string) {
	c := comparison{ranks: ranks, comm: comm, epoch: epoch, read: read}
	c.epoch = c.newest()
	first := c.first()
	if c.epoch > 0 {
		name = fmt.Sprintf("%s, epoch %d", name, c.epoch)
	}
	for number := max(1, first-before); first > 0 && number <= first; number++ {
		mark := ""
		if number == first {
			mark = "● "
		}
		if text := c.describe(number); text != "" {
			lines = append(lines, fmt.Sprintf("%scall %d of %s: %s", mark, number, name, text))
		}
	}
	if first != c.first() {
		return nil
	}
	return lines
}

type comparison struct {
	ranks []int
	comm  uint64
	read  Reader
	epoch uint32
}

// A past is what is known of a rank's calls on a communicator in an epoch.
type past struct {
	calls []record.Call
	known bool // the last of calls is the rank's last; if there are none, it has made none
}

// last returns the number of the rank's last call.
func (p *past) last() int {
	if len(p.calls) == 0 {
		return 0
	}
	return p.calls[len(p.calls)-1].Number
}

// newest returns the newest epoch of the communicator in any record, or c.epoch.
func (c *comparison) newest() (epoch uint32) {
	var calls []record.Call
	epoch = c.epoch
	for _, rank := range c.ranks {
		calls, _ = c.read(rank, calls[:0])
		for _, call := range calls {
			if call.IsOn(c.comm) {
				epoch = max(epoch, call.Epoch)
			}
		}
	}
	return epoch
}

// all yields the past of each rank. A past is valid until the next one.
func (c *comparison) all() iter.Seq2[int, past] {
	return func(yield func(rank int, p past) bool) {
		var calls []record.Call
		for _, rank := range c.ranks {
			var complete bool
			calls, complete = c.read(rank, calls[:0])
			if !yield(rank, c.past(calls, complete)) {
				return
			}
		}
	}
}

// past chooses from a rank's record. It changes calls.
func (c *comparison) past(calls []record.Call, complete bool) past {
	mine, known := calls[:0], complete
	for _, call := range calls {
		if !call.IsOn(c.comm) {
			continue
		}
		known = true
		if call.Epoch == c.epoch {
			if n := len(mine); n > 0 && mine[n-1].Number >= call.Number { // garbage
				mine = mine[:0]
			}
			mine = append(mine, call)
		}
	}
	return past{mine, known}
}

// first returns the number of the first call in which the ranks differ; 0: none.
func (c *comparison) first() (number int) {
	words := make(map[int]signature.Word)
	least, most := -1, 0
	for _, p := range c.all() {
		if !p.known {
			continue
		}
		most = max(most, p.last())
		if last := p.last(); least < 0 || last < least {
			least = last
		}
		for _, call := range p.calls {
			if w, made := words[call.Number]; !made {
				words[call.Number] = call.Word
			} else if w != call.Word && !(w.Fits(call.Word) && call.Word.Fits(w)) && (number == 0 || call.Number < number) {
				number = call.Number
			}
		}
	}
	if least >= 0 && least < most && (number == 0 || number > least) {
		number = least + 1
	}
	return number
}

// describe says what the ranks have called, or returns "" if no record has the call any more.
func (c *comparison) describe(number int) string {
	var groups Groups
	times := make(map[string]record.Call) // the earliest, by text
	for rank, p := range c.all() {
		text := "none"
		if !p.known || len(p.calls) > 0 && number < p.calls[0].Number {
			text = "not recorded"
		}
		for _, call := range p.calls {
			if call.Number != number {
				continue
			}
			text = call.Word.String()
			if t, made := times[text]; !made || call.Time < t.Time {
				times[text] = call
			}
		}
		groups.Add(rank, text)
	}
	if len(times) == 0 {
		return ""
	}
	var parts []string
	for _, g := range groups.All {
		part := g.Text + " at " + Name(g.Ranks)
		if t := times[g.Text]; t.Time != 0 {
			part += " (" + t.Clock() + ")"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, " | ")
}
