package mpicx

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/element"
	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// checksOfMessages are what M1 and M2 need of this many messages, all of their ranks together: at
// each sender and receiver the signature of the elements, and a comparison. TypeOf has looked for
// pointers, too, which is needed anyway: so this is more than their share.
func checksOfMessages(n int) {
	r := transport.Request{Private: transport.Private{Kind: transport.Receiving}}
	for range n {
		sent := element.TypeOf[float64]()
		r.Signature = element.TypeOf[float64]().Signature
		r.Status.Signature = sent.Signature
		if sent.Unfit != nil || fits("Recv", &r) != nil {
			panic("they do not fit")
		}
	}
}

// checksOfCalls are those of an Allreduce on the board: at each rank the word of the call, and a
// comparison with that of the first.
func checksOfCalls(ranks int) {
	var first signature.Word
	for range ranks {
		w := reducing[float64](signature.Allreduce, Sum, 0, 1).Word()
		if first == 0 {
			first = w
		}
		if w != first && !w.Fits(first) {
			panic("they do not fit")
		}
	}
}

// BenchmarkChecks says what the checks of messages and calls cost: the operation with them, against
// the operation without, both on one goroutine's time and measured in turn. Goroutine ranks
// make the ratio greatest, since nothing moves a message sooner.
func BenchmarkChecks(b *testing.B) {
	for _, test := range []struct {
		name   string
		ranks  int
		op     func(ctx context.Context, c *Comm, buf []float64)
		checks func()
	}{
		{"8 bytes there and back", 2, func(ctx context.Context, c *Comm, buf []float64) {
			other := 1 - c.Rank()
			if c.Rank() == 0 {
				Send(c, buf[:1], other, 0).MustWait(ctx)
			}
			Recv(c, buf[1:], other, 0).MustWait(ctx)
			if c.Rank() == 1 {
				Send(c, buf[:1], other, 0).MustWait(ctx)
			}
		}, func() { checksOfMessages(2) }},
		{"Allreduce, 2 ranks", 2, allreduceOne, func() { checksOfCalls(2) }},
		{"Allreduce, 8 ranks", 8, allreduceOne, func() { checksOfCalls(8) }},
		{"Barrier, 8 ranks", 8, func(ctx context.Context, c *Comm, _ []float64) { c.Barrier().MustWait(ctx) }, func() { checksOfCalls(8) }},
	} {
		b.Run(test.name, func(b *testing.B) {
			var ops, checks []float64
			require.NoError(b, Run(b.Context(), func(ctx context.Context, c *Comm) error {
				all, own := measured(ctx, c, b.N, test.op, test.checks)
				if c.Rank() == 0 {
					ops, checks = all, own
				}
				return nil
			}, WithRanks(test.ranks)))
			slices.Sort(ops)
			slices.Sort(checks)
			op, check := ops[len(ops)/2], checks[len(checks)/2]
			b.ReportMetric(op, "ns/operation")
			b.ReportMetric(check, "ns/checks")
			b.ReportMetric(op/(op-check), "ratio")
		})
	}
}

// measured returns how long operations took, and at rank 0 their checks, in turn.
func measured(ctx context.Context, c *Comm, times int, op func(context.Context, *Comm, []float64), check func()) (ops, checks []float64) {
	buf := make([]float64, 2)
	for range times {
		if c.Rank() == 0 {
			checks = append(checks, perCall(check))
		}
		c.Barrier().MustWait(ctx)
		ops = append(ops, perCall(func() { op(ctx, c, buf) }))
	}
	return ops, checks
}

// perCall returns how many nanoseconds a call takes.
func perCall(call func()) float64 {
	const times = 500
	begin := time.Now()
	for range times {
		call()
	}
	return float64(time.Since(begin)) / times
}

func allreduceOne(ctx context.Context, c *Comm, buf []float64) {
	Allreduce(c, buf[:1], buf[1:], Sum).MustWait(ctx)
}
