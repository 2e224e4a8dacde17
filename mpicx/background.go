package mpicx

import (
	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/internal/ledger"
	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// background is a hook.Background. The epoch and the tags of its exchanges are taken when it begins,
// no matter when they start. The transport ends exchanges that start after an error.
type background struct {
	future *future.Future[struct{}]
	end    func(struct{}, error)
	comm   *Comm
	name   string
	epoch  transport.Epoch
	first  int // sequence number of the next exchange
}

var inBackground = call{Kind: signature.Background}.Word()

var _ hook.Background = (*background)(nil)

func (i *inside) Begin(name string, exchanges int) (hook.Background, *future.Future[struct{}]) {
	c := (*Comm)(i)
	c.notInReduction("begins", name)
	epoch, err := c.begin(name)
	if err != nil {
		return nil, failed[struct{}](c, err)
	}
	f, end := begins[struct{}](c, name, ledger.Take)
	b := &background{future: f, end: end, comm: c, name: name, epoch: epoch, first: c.t.Call(epoch, inBackground)}
	for range exchanges - 1 {
		c.t.Call(epoch, inBackground)
	}
	return b, f
}

func (b *background) cell() *waiting.Cell    { return waiting.Of(b.future) }
func (b *background) Epoch() transport.Epoch { return b.epoch }

func (b *background) Exchange(a collective.Algorithm, then func(error)) {
	tag := transport.CollectiveTag(b.first)
	b.first++
	x := &collective.Exchange{Name: b.name, Signature: inBackground}
	x.Start(b.comm.t, b.epoch, tag, a, &backgroundExchange{b, then})
}

func (b *background) End(err error) { b.end(struct{}{}, err) }

// backgroundExchange is one exchange of a background operation. For the program it is that operation.
type backgroundExchange struct {
	*background
	then func(error)
}

func (x *backgroundExchange) Ended(err error) { x.then(x.comm.failure(x.name, err)) }
