package match

import (
	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// A Key is the part of a message or a receive that decides whether they match. The key of a receive
// may have the wildcards AnySource and AnyTag.
type Key struct {
	Epoch       transport.Epoch
	Source, Tag int
}

// An Envelope describes a message to its receive.
type Envelope struct {
	Key
	Bytes     int // length of the message
	Signature signature.Word
}

// Status returns the Status of a request that gets the message.
func (e *Envelope) Status() transport.Status {
	return transport.Status{Source: e.Source, Tag: e.Tag, Bytes: e.Bytes, Signature: e.Signature}
}

// keyOf returns the key of a receive or probe.
func keyOf(r *transport.Request) Key { return Key{r.Epoch, r.Peer, r.Tag} }

// takes says whether a receive or probe matches the message m. The most likely difference is
// compared first.
func takes(r *transport.Request, m *Key) bool {
	return (r.Tag == m.Tag || r.Tag == transport.AnyTag && m.Tag >= 0) &&
		(r.Peer == m.Source || r.Peer == transport.AnySource) && r.Epoch == m.Epoch
}
