package mpicxtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"testing"

	"github.com/mpicx/go-mpicx/internal/fault"
	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/internal/machine"
	"github.com/mpicx/go-mpicx/mpicx"
)

// process is a process that RunProcesses has started.
type process struct {
	beginning
	place *machine.Place
	plan  *fault.Plan // of the call of RunProcesses that this process is for

	mu   sync.Mutex
	told *os.File
}

// message is a message from a process to the test: a value; that a statement of a plan is carried
// out, and whether it ends the process; or how fn has returned.
type message struct {
	Value           []byte
	Statement       *int // its index
	Killed          bool
	Counts          string // what the rank has begun so far
	Err             string
	Failed, Skipped bool
}

// child is this process if RunProcesses has started it, else nil.
var child = newChild()

// newChild removes the process's beginning from the environment. Calls of Run before that of
// RunProcesses therefore have goroutine ranks, and processes that this one starts are not such
// children.
func newChild() *process {
	name := os.Getenv(envBeginning)
	if name == "" {
		return nil
	}
	c := &process{}
	var err error
	if c.place, err = machine.Started(); err == nil && c.place == nil {
		err = errors.New("not started as one of a job")
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(name)
	}
	if err == nil {
		err = json.Unmarshal(text, &c.beginning)
	}
	if err == nil {
		c.told, err = os.OpenFile(c.file(c.place.Rank), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	}
	if err != nil {
		panic(fmt.Sprintf("mpicxtest: %s=%q: %v", envBeginning, name, err))
	}
	for _, name := range append(machine.Names(), envBeginning) {
		_ = os.Unsetenv(name)
	}
	return c
}

func (b *beginning) file(rank int) string { return fmt.Sprint(b.Dir, "/", rank) }

// tell writes a message, which is not lost if the process dies.
func (c *process) tell(m message) {
	text, err := json.Marshal(m)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		_, err = c.told.Write(text)
	}
	if err != nil {
		panic(fmt.Sprintf("mpicxtest: %v", err))
	}
}

// read returns the messages of a process.
func (b *beginning) read(t *testing.T, rank int) (all []message) {
	t.Helper()
	f, err := os.Open(b.file(rank))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	} else if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for d := json.NewDecoder(f); ; {
		var m message
		if err := d.Decode(&m); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) { // it may have been killed while it wrote
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
}

// run carries out a call of RunProcesses in the process.
func (c *process) run(t *testing.T, call int, fn func(context.Context, *mpicx.Comm) error, opts []mpicx.Option) []Process {
	t.Helper()
	if before := c.Before[t.Name()]; call < len(before) && !(t.Name() == c.Test && call == c.Call) {
		calls.note(t.Name(), before[call])
		return before[call]
	}
	if t.Name() != c.Test || call != c.Call {
		t.Skip("a call that this process has not been started for")
	}
	plan, err := fault.Parse(c.Plan)
	if err != nil {
		t.Fatal(err)
	}
	c.plan, plan.Carry = plan, c.carry
	for name, value := range c.place.Variables() {
		_ = os.Setenv(name, value)
		defer os.Unsetenv(name)
	}
	l := new(unnoticed)
	err = mpicx.Run(context.Background(), fn, append(opts, hook.Transport[mpicx.Option](plan.Wrap), l.option())...)
	l.report(t)
	m := message{Failed: t.Failed(), Skipped: t.Skipped(), Counts: plan.Counts(c.place.Rank)}
	if err != nil {
		m.Err = err.Error()
	}
	c.tell(m)
	t.SkipNow() // the code after the call is for the test's own process
	return nil
}

// carry carries out a plan's deed on this process.
func (c *process) carry(statement int, d fault.Deed) {
	c.tell(message{Statement: &statement, Killed: d.Stop == 0, Counts: c.plan.Counts(c.place.Rank)})
	if d.Stop > 0 {
		if err := stop(d.Stop); err != nil {
			panic(fmt.Sprintf("mpicxtest: stop: %v", err))
		}
		return
	}
	if d.Exits {
		os.Exit(d.Status)
	}
	if err := killBy(d.Signal); err != nil {
		panic(fmt.Sprintf("mpicxtest: %s: %v", d.Signal, err))
	}
	select {}
}
