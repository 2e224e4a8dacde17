package mpicx

import (
	"fmt"

	"github.com/mpicx/go-mpicx/internal/couple"
	"github.com/mpicx/go-mpicx/internal/element"
	"github.com/mpicx/go-mpicx/internal/transport"
)

const intercommOp = "CreateIntercomm"

// A bridging is the leader's part: it sends one letter to the other leader, and receives one.
type bridging struct {
	bridge    *Comm // the program uses it until the other's letter is there
	peer, tag int   // the other leader's rank on the bridge, and the tag of the letters
	epoch     transport.Epoch
	err       error               // why no letters can be exchanged
	got       func(couple.Letter) // gets the other's letter; nil: nobody waits for it
}

func newBridging(bridge *Comm, peer, tag int) *bridging {
	b := &bridging{bridge: bridge, peer: peer, tag: tag}
	if bridge == nil {
		b.err = mpiErrorf(intercommOp, ClassComm, "bridge: "+nilComm)
		return b
	}
	k := check{op: intercommOp}
	k.that(peer >= 0 && peer < bridge.size && peer != bridge.rank, ClassRank, "remote leader %d of %s at rank %d, expected another of its %d ranks", peer, bridge.name, bridge.rank, bridge.size)
	k.that(tag >= 0, ClassTag, "tag %d, expected 0 or more", tag)
	if b.epoch, b.err = bridge.begin(intercommOp); b.err == nil {
		b.err = k.err
	}
	return b
}

// exchange sends the leader's letter and receives the other's. It does so even if nobody waits for
// the other's letter; otherwise the next call would receive it.
func (b *bridging) exchange(own couple.Letter, got func(couple.Letter)) {
	if b == nil {
		return
	}
	if b.err != nil {
		if got != nil {
			got(couple.Letter{Failure: b.err.Error()})
		}
		return
	}
	b.got = got
	letter, _ := element.Encode(own)
	b.bridge.t.Irecv(&transport.Request{Take: true, Peer: b.peer, Tag: b.tag, Epoch: b.epoch, Signature: element.Value.Signature, Done: b})
	b.bridge.t.Isend(&transport.Request{Buf: letter, Peer: b.peer, Tag: b.tag, Mode: transport.Shared, Epoch: b.epoch, Signature: element.Value.Signature, Done: completer(func(*transport.Request) {})})
}

// Completed receives the other leader's letter.
func (b *bridging) Completed(r *transport.Request) {
	if b.got == nil {
		return
	}
	var other couple.Letter
	var err error
	if r.Err != nil {
		err = b.bridge.failure(intercommOp, r.Err)
	} else {
		other, err = element.Decode[couple.Letter](r.Buf)
	}
	if err != nil {
		other.Failure = fmt.Sprintf("the leaders can't meet on %s: %v", b.bridge.name, mpiError(intercommOp, err))
	}
	b.got(other)
}

// Awaited says that this leader waits for the letter. The other leader then counts as dead if its
// program has returned.
func (b *bridging) Awaited() bool { return b.got != nil }

// completer makes a transport.Completer of a function.
type completer func(*transport.Request)

func (f completer) Completed(r *transport.Request) { f(r) }
