package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/local"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// paperSignals is mpicxSignals with the protocol of the paper's section III-B, on the same
// transport and with the same collective algorithms.
func paperSignals(n, times int, wrap ...wrapper) samples {
	var took samples
	var wg sync.WaitGroup
	for _, side := range local.New(n) {
		wg.Go(func() {
			var world transport.Comm = side
			for _, w := range wrap {
				world = w(world)
			}
			p := &paperRank{place: waiting.NewPlace()}
			for i := range times {
				p.run(world, 2*i+1, collective.Barrier{})
				start := time.Now()
				p.signalOnce(world, uint64(i))
				if world.Rank() == 0 {
					took = append(took, float64(time.Since(start)))
				}
			}
		})
	}
	wg.Wait()
	return took
}

// paperRank contains the futures of one rank. No error interrupts them.
type paperRank struct {
	waiting.Nobody
	place *waiting.Place
}

func (p *paperRank) Park(ctx context.Context) (*waiting.Place, <-chan struct{}) {
	return p.place, ctx.Done()
}

// operation is a message or a collective under way.
type operation struct {
	future.Promise[struct{}]
	request  transport.Request
	exchange collective.Exchange
}

func (o *operation) Completed(r *transport.Request) { o.Complete(struct{}{}, r.Err) }
func (o *operation) Ended(err error)                { o.Complete(struct{}{}, err) }

func (p *paperRank) operation() *operation {
	o := new(operation)
	waiting.Of(o.Future()).Keep(p)
	return o
}

func (p *paperRank) wait(o *operation) { must(o.Future().Wait(context.Background())) }

// run runs a collective operation with the seq-th tag of the communicator.
func (p *paperRank) run(c transport.Comm, seq int, a collective.Algorithm) {
	o := p.operation()
	o.exchange.Start(c, c.Epoch(), transport.CollectiveTag(seq), a, o)
	p.wait(o)
}

func (p *paperRank) message(peer int, mode transport.Mode, buf []byte) *operation {
	o := p.operation()
	o.request = transport.Request{Buf: buf, Peer: peer, Mode: mode, Done: o}
	return o
}

func dup(c transport.Comm, seq uint64) transport.Comm {
	d, err := c.Sub(transport.Name{Seq: seq}, nil)
	must(err)
	return d
}

// signalOnce duplicates the communicator, signals an error at rank 0, and closes the duplicate.
func (p *paperRank) signalOnce(world transport.Comm, seq uint64) {
	// The constructor of Comm: the communicator, and comm_err with its pending receive.
	comm := dup(world, seq)
	commErr := dup(comm, 0)
	rank, n := comm.Rank(), comm.Size()
	errReq := p.message(transport.AnySource, 0, make([]byte, 8))
	commErr.Irecv(&errReq.request)

	const code = 666
	var sends []*operation
	if rank == 0 { // signal_error
		for dest := 1; dest < n; dest++ {
			o := p.message(dest, transport.Synchronous, binary.NativeEndian.AppendUint64(nil, code))
			sends = append(sends, o)
			commErr.Isend(&o.request)
		}
		commErr.Cancel(&errReq.request)
	} else {
		p.wait(errReq) // MPI_Waitany of the user's request and err_req
	}
	for _, o := range sends {
		p.wait(o)
	}
	p.run(commErr, 1, collective.Barrier{})

	and := func(dst, l, r []byte) { put(dst, get(l)&get(r)) }
	sum := func(dst, l, r []byte) { put(dst, get(l)+get(r)) }
	choose := collective.ChooserFor(commErr).ByMessages()
	allreduce := func(seq int, op collective.Op, vs ...uint64) []byte {
		all := words(vs...)
		p.run(commErr, seq, choose.Allreduce(nil, &collective.Reduction{Recv: all, Op: op, Element: 8}))
		return all
	}
	corrupt := allreduce(2, and, 1)

	failed := uint64(0)
	if rank == 0 {
		failed = 1
	}
	index := words(failed)
	p.run(commErr, 3, choose.Scan(nil, &collective.Reduction{Recv: index, Op: sum, Element: 8}, false))
	count := words(get(index))
	p.run(commErr, 4, choose.Bcast(nil, count, n-1))
	table := make([]uint64, 2*get(count)) // rank and code of each failed rank
	if failed == 1 {
		table[2*get(index)-2], table[2*get(index)-1] = uint64(rank), code
	}
	result := allreduce(5, func(dst, l, r []byte) {
		for i := 0; i < len(dst); i += 8 {
			put(dst[i:], max(get(l[i:]), get(r[i:])))
		}
	}, table...)
	if get(corrupt) != 1 || get(result[8:]) != code {
		panic(fmt.Sprintf("rank %d: the paper's protocol went wrong", rank))
	}
	p.run(comm, 1, collective.Barrier{}) // MPI_Comm_free
}

func get(b []byte) uint64    { return binary.NativeEndian.Uint64(b) }
func put(b []byte, v uint64) { binary.NativeEndian.PutUint64(b, v) }

func words(vs ...uint64) []byte {
	var b []byte
	for _, v := range vs {
		b = binary.NativeEndian.AppendUint64(b, v)
	}
	return b
}
