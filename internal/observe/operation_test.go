package observe_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/observe"
	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
)

type named string

func (n named) Operation() string            { return string(n) }
func (n named) Completed(*transport.Request) {}

type stepper int

func (s stepper) Step() (string, int)          { return "Barrier", int(s) }
func (s stepper) Completed(*transport.Request) {}

func TestOperation(t *testing.T) {
	barrier := signature.Call{Kind: signature.Barrier}.Word()
	later := transport.Epoch(0).Next(0)
	for _, test := range []struct {
		kind         transport.Kind
		request      transport.Request
		here, shared string // shared is "" if it is the same
	}{
		{transport.Receiving, transport.Request{Peer: 5, Tag: 9, Done: named("Recv")}, "Recv from rank 5, tag 9 on world", ""},
		{transport.Sending, transport.Request{Peer: 0, Tag: 0, Done: named("Ssend"), Epoch: later}, "Ssend to rank 0, tag 0 on world, epoch 1", ""},
		{transport.Receiving, transport.Request{Peer: transport.AnySource, Tag: transport.AnyTag, Done: named("Recv")}, "Recv from any rank, any tag on world", ""},
		{transport.Receiving, transport.Request{Peer: 5, Tag: transport.NoTag, Done: named("Agree")}, "Agree on world", ""},
		{transport.Receiving, transport.Request{Peer: 5, Tag: transport.CollectiveTag(3), Done: named("TryAll")}, "TryAll on world", "TryAll #3 on world"},
		{transport.Receiving, transport.Request{Peer: 5, Tag: 9}, "receive from rank 5, tag 9 on world", ""},
		{transport.Sending, transport.Request{Peer: 5, Tag: transport.CollectiveTag(17), Done: stepper(2), Signature: barrier, Epoch: later},
			"Barrier, step 2: send to rank 5 on world, epoch 1", "Barrier #17 on world, epoch 1"},
		{transport.Receiving, transport.Request{Peer: 5, Tag: transport.AgreementTag(1), Done: stepper(1)}, "Barrier, step 1: receive from rank 5 on world", "Barrier on world"},
	} {
		test.request.Kind = test.kind
		require.Equal(t, test.here, observe.OperationOf(&test.request, "world").String())
		if test.shared == "" {
			test.shared = test.here
		}
		require.Equal(t, test.shared, observe.SharedOperationOf(&test.request, "world").String())
	}
}
