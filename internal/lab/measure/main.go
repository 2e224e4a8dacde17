// Measure prints how long each collective algorithm takes, and how long the one takes that
// package collective's table chooses. It has produced the table's numbers.
//
//	go -C internal/lab run ./measure -ranks 8
//	mpicxrun -n 4 measure
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/mpicx"
)

func main() {
	ranks := flag.Int("ranks", 0, "goroutine `ranks`, where no launcher has started processes; 0: as many as there are cores")
	operations := flag.String("operations", "", "measure these alone: `names` with commas between")
	sizes := flag.String("bytes", "8,512,4096,16384,65536,262144,1048576", "`numbers` of bytes")
	rounds := flag.Int("rounds", 15, "take the shortest of so many `times`")
	flag.Parse()
	var options []mpicx.Option
	if *ranks > 0 {
		options = append(options, mpicx.WithRanks(*ranks))
	}
	err := mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		m := measurement{ctx, world, *rounds}
		for _, op := range collective.Operations {
			if *operations != "" && !slices.Contains(strings.Split(*operations, ","), op.Name) {
				continue
			}
			for _, text := range strings.Split(*sizes, ",") {
				bytes, err := strconv.Atoi(text)
				if err != nil {
					return err
				}
				m.measure(op, bytes)
				if op.Name == "Barrier" {
					break
				}
			}
		}
		return nil
	}, options...)
	if err != nil {
		log.Fatal(err)
	}
}

type measurement struct {
	ctx    context.Context
	world  *mpicx.Comm
	rounds int
}

// measure prints the shortest time of an operation with each of its algorithms, and with the
// one that is chosen. The algorithms take turns.
func (m measurement) measure(op collective.Operation, bytes int) {
	begin := begins(m.world, op.Name, bytes)
	var names []string
	for _, a := range op.Algorithms {
		names = append(names, a.Name)
	}
	names = append(names, "")
	shortest, times := make([]time.Duration, len(names)), make([]int, len(names))
	for i := range shortest {
		shortest[i] = math.MaxInt64
	}
	for round := range m.rounds {
		for i, name := range names {
			m.force(op.Name, name)
			if round == 0 { // find how many calls take 2 ms
				times[i] = 1
				one := m.run(begin, 1)
				often := []int{int(max(1, min(2000, 2*time.Millisecond/one)))}
				mpicx.Bcast(m.world, often, 0).MustWait(m.ctx)
				times[i] = often[0]
			}
			shortest[i] = min(shortest[i], m.run(begin, times[i])/time.Duration(times[i]))
			m.force(op.Name, "")
		}
	}
	if m.world.Rank() > 0 {
		return
	}
	fmt.Printf("%-13s %3d ranks %7d bytes:", op.Name, m.world.Size(), bytes)
	names[len(names)-1] = "chosen"
	for i, name := range names {
		fmt.Printf("  %s %.2f", name, float64(shortest[i])/1e3)
	}
	fmt.Println(" us")
}

// force makes all ranks use an algorithm for an operation; "": the one that is chosen.
func (m measurement) force(operation, name string) {
	m.meet(operation)
	if m.world.Transport() != "local" || m.world.Rank() == 0 {
		collective.Forced = map[string]string{operation: name}
	}
	m.meet(operation)
}

// meet is a barrier that does not use the operation whose algorithm changes.
func (m measurement) meet(operation string) {
	if operation != "Barrier" {
		m.world.Barrier().MustWait(m.ctx)
		return
	}
	mpicx.AllgatherValue(m.world, 0).MustGet(m.ctx)
}

// run returns how long it takes to begin an operation and to wait for it, the given number of
// times.
func (m measurement) run(begin func() *future.Future[struct{}], times int) time.Duration {
	m.world.Barrier().MustWait(m.ctx)
	start := time.Now()
	for range times {
		begin().MustWait(m.ctx)
	}
	m.world.Barrier().MustWait(m.ctx)
	return time.Since(start)
}

// begins returns the function that begins an operation on this many bytes of each rank.
func begins(c *mpicx.Comm, operation string, bytes int) func() *future.Future[struct{}] {
	n := bytes / 8
	send, recv := make([]float64, n), make([]float64, n)
	all, sent := make([]float64, n*c.Size()), []float64(nil)
	counts, equal := make([]int, c.Size()), make([]int, c.Size())
	for r := range counts {
		counts[r] = n*(r+1)/c.Size() - n*r/c.Size()
		equal[r] = n
	}
	for i := range all {
		all[i] = 1
		send[i%n], recv[i%n] = 1, 1
	}
	calls := 0
	root := func() int { // the first and the last rank in turn, so that no root gets ahead of the others
		calls++
		return calls % 2 * (c.Size() - 1)
	}
	if operation == "Alltoall" || operation == "Scatter" {
		sent = slices.Clone(all)
	}
	switch operation {
	case "Barrier":
		return c.Barrier
	case "Bcast":
		return func() *future.Future[struct{}] { return mpicx.Bcast(c, send, root()) }
	case "Reduce":
		return func() *future.Future[struct{}] { return mpicx.Reduce(c, send, recv, mpicx.Sum, root()) }
	case "Allreduce":
		return func() *future.Future[struct{}] { return mpicx.Allreduce(c, send, recv, mpicx.Sum) }
	case "ReduceScatter":
		return func() *future.Future[struct{}] {
			return mpicx.ReduceScatter(c, send, recv[:counts[c.Rank()]], counts, mpicx.Sum)
		}
	case "Allgather":
		return func() *future.Future[struct{}] { return mpicx.Allgather(c, send, all) }
	case "Allgatherv":
		return func() *future.Future[struct{}] { return mpicx.Allgatherv(c, send, all, equal) }
	case "Alltoall":
		return func() *future.Future[struct{}] { return mpicx.Alltoall(c, sent, all) }
	case "Gather":
		return func() *future.Future[struct{}] { return mpicx.Gather(c, send, all, root()) }
	case "Scan":
		return func() *future.Future[struct{}] { return mpicx.Scan(c, send, recv, mpicx.Sum) }
	case "Scatter":
		return func() *future.Future[struct{}] { return mpicx.Scatter(c, sent, recv, root()) }
	}
	panic("no operation: " + operation)
}
