package checkpoint

import (
	"context"
	"fmt"
	"slices"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
)

// fetch carries out this rank's part of a retrieval. It returns the records that this rank then
// has, and which of its files are bad, and throws other errors. Messages between two ranks are in
// the order of the retrieval.
func (p *retrieval) fetch(ctx context.Context, s *Store, from *Store) (_ map[int][2][]byte, bad []stored) {
	rank := s.comm.Rank()
	x := &fetching{ctx: ctx, comm: s.comm, from: from, records: make(map[int][2][]byte)}
	if own := from.slotOf(p.key); own != nil {
		for _, part := range own.parts() {
			if p.owner[part] == rank {
				records, err := own.records(part)
				mpicx.Throw(err)
				x.records[part] = records
			}
		}
	}
	for _, d := range p.decodes {
		if d.adopter != rank {
			x.give(d)
		}
	}
	for _, r := range p.reads {
		if r.reader != rank {
			continue
		}
		records, err := readPart(s.opts.dir, r.file)
		if err != nil {
			bad = append(bad, r.file)
			records = [2][]byte{}
		}
		if r.adopter == rank {
			x.records[r.file.Part] = records
			continue
		}
		for _, b := range records {
			x.sends = append(x.sends, mpicx.Send(s.comm, b, r.adopter, 0))
		}
	}
	for _, d := range p.decodes {
		if d.adopter == rank {
			x.decode(d)
		}
	}
	for _, r := range p.reads {
		if r.adopter != rank || r.reader == rank {
			continue
		}
		var records [2][]byte
		for i := range records {
			records[i] = mpicx.RecvSlice[byte](s.comm, r.reader, 0).MustGet(ctx)
			x.fetched += int64(len(records[i]))
		}
		x.records[r.file.Part] = records
	}
	mpicx.Throw(future.WaitAll(ctx, x.sends...))
	s.count(func(c *Stats) { c.Fetched, c.Sent = c.Fetched+x.fetched, c.Sent+x.sent })
	return x.records, bad
}

// A fetching is the state of one rank while it carries out its part of a retrieval.
type fetching struct {
	ctx           context.Context
	comm          *mpicx.Comm
	from          *Store // what this rank has in memory
	sends         []future.Waiter
	records       map[int][2][]byte // by part
	fetched, sent int64
}

// shard returns a shard that this rank has in its slot with the layout of h.
func (x *fetching) shard(h *holding, which, stripe, i int) []byte {
	at := slices.IndexFunc(x.from.slots, func(o *slot) bool { return o.good && h.isLike(&o.holding) })
	return x.from.slots[at].shard(which, stripe, i)
}

// give sends the shards that this rank has to the adopter.
func (x *fetching) give(d *decoding) {
	g := d.like.group()
	for which := range d.like.Chunk {
		for c := range g.k {
			ranks, shards := d.sources(c)
			for i, shard := range shards {
				if ranks[i] == x.comm.Rank() {
					b := x.shard(d.like, which, g.stripeOf(d.lost, c), shard)
					x.sends = append(x.sends, mpicx.Send(x.comm, b, d.adopter, 0))
					x.sent += int64(len(b))
				}
			}
		}
	}
}

// decode computes the blobs of the lost member of a group.
func (x *fetching) decode(d *decoding) {
	for which := range d.like.Chunk {
		all, err := splitBlob(x.blob(d, which))
		if err != nil {
			mpicx.Throw(fmt.Errorf("%w: rank %d of version %d", err, d.like.Members[d.lost], d.like.Key.Version))
		}
		for _, part := range d.parts {
			r := x.records[part]
			r[which] = all[part]
			x.records[part] = r
		}
	}
}

// blob computes one of these blobs, chunk by chunk.
func (x *fetching) blob(d *decoding, which int) (data []byte) {
	g, length := d.like.group(), d.like.Chunk[which]
	for c := range g.k {
		ranks, numbers := d.sources(c)
		shards := make([][]byte, g.k+g.m)
		var recvs []future.Waiter
		for i, n := range numbers {
			if ranks[i] == x.comm.Rank() {
				shards[n] = x.shard(d.like, which, g.stripeOf(d.lost, c), n)
				continue
			}
			shards[n] = expect(make([]byte, length))
			recvs = append(recvs, mpicx.Recv(x.comm, shards[n], ranks[i], 0))
			x.fetched += int64(length)
		}
		mpicx.Throw(future.WaitAll(x.ctx, recvs...))
		chunk, err := decode(g.scheme, shards, c)
		mpicx.Throw(err)
		switch {
		case g.k == 1:
			return chunk
		case c == 0:
			data = expect(make([]byte, 0, g.k*length))
		}
		data = append(data, chunk...)
	}
	return data
}
