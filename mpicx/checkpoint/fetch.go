package checkpoint

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
)

// fetch carries out this rank's part of a retrieval. It returns the records that this rank then has,
// and which of its files are bad. Messages between two ranks are in the order of the retrieval.
func (p *retrieval) fetch(ctx context.Context, s *Store, from *Store) (x *fetching, bad []stored, err error) {
	c, rank := s.comm, s.comm.Rank()
	x = &fetching{ctx: ctx, comm: c, records: make(map[int][2][]byte)}
	if err := x.keep(p, from); err != nil {
		return nil, nil, err
	}
	for i := range p.decodes {
		x.give(&p.decodes[i], from, rank)
	}
	own := make(map[int][2][]byte) // records from this rank's files that it adopts itself
	for _, r := range p.reads {
		if r.reader != rank {
			continue
		}
		parts, err := readPart(s.opts.dir, r.file)
		if err != nil {
			bad = append(bad, r.file)
			parts = [2][]byte{}
		}
		if r.adopter == rank {
			own[r.file.Part] = parts
			continue
		}
		for _, b := range parts {
			x.sends = append(x.sends, mpicx.Send(c, b, r.adopter, 0))
		}
	}
	for i := range p.decodes {
		if d := &p.decodes[i]; d.adopter == rank {
			if err := x.decode(d, from, rank); err != nil {
				return nil, nil, err
			}
		}
	}
	for _, r := range p.reads {
		if r.adopter != rank {
			continue
		}
		parts := own[r.file.Part]
		if r.reader != rank {
			for i := range parts {
				if parts[i], err = mpicx.RecvSlice[byte](c, r.reader, 0).Get(ctx); err != nil {
					return nil, nil, err
				}
				x.fetched += int64(len(parts[i]))
			}
		}
		x.records[r.file.Part] = parts
	}
	if err := future.WaitAll(ctx, x.sends...); err != nil {
		return nil, nil, err
	}
	s.count(func(c *Stats) { c.Fetched, c.Sent = c.Fetched+x.fetched, c.Sent+x.sent })
	return x, bad, nil
}

// A fetching is one rank's part of a retrieval, under way.
type fetching struct {
	ctx           context.Context
	comm          *mpicx.Comm
	sends         []future.Waiter
	records       map[int][2][]byte // by part
	decoded       [2][]byte         // the last blobs that were decoded
	fetched, sent int64
}

// slotOf returns this rank's slot with the layout of h.
func slotOf(from *Store, h *holding) *slot {
	for _, o := range from.slots {
		if o.Key == h.Key && o.Stamp == h.Stamp && o.good {
			return o
		}
	}
	return nil
}

// keep takes the records that this rank has in memory.
func (x *fetching) keep(p *retrieval, from *Store) error {
	if len(p.keep[x.comm.Rank()]) == 0 {
		return nil
	}
	var own *slot
	for _, o := range from.slots {
		if o.good && o.Key == p.key && (own == nil || o.Stamp > own.Stamp) {
			own = o
		}
	}
	for _, part := range p.keep[x.comm.Rank()] {
		r, err := own.records(part)
		if err != nil {
			return err
		}
		x.records[part] = r
	}
	return nil
}

// give sends the shards that this rank has to the adopter.
func (x *fetching) give(d *decoding, from *Store, rank int) {
	if d.adopter == rank {
		return
	}
	x.each(d, func(which, stripe, shard, source int) {
		if source == rank {
			b := slotOf(from, d.like).shard(which, stripe, shard)
			x.sends = append(x.sends, mpicx.Send(x.comm, b, d.adopter, 0))
			x.sent += int64(len(b))
		}
	})
}

// each calls do for all shards that a decoding needs, with the blob and the source rank of each.
func (x *fetching) each(d *decoding, do func(which, stripe, shard, source int)) {
	g := d.like.group()
	for which := range d.like.Chunk {
		for c := range g.k {
			positions, shards := d.sources(c)
			for i, shard := range shards {
				do(which, g.stripeOf(d.lost, c), shard, d.present[positions[i]])
			}
		}
	}
}

// decode computes the blobs of the lost member of a group.
func (x *fetching) decode(d *decoding, from *Store, rank int) error {
	g := d.like.group()
	for which, length := range d.like.Chunk {
		var data []byte
		if g.k > 1 {
			data = expect(make([]byte, 0, g.k*length))
		}
		for c := range g.k {
			positions, numbers := d.sources(c)
			shards := make([][]byte, g.k+g.m)
			var recvs []future.Waiter
			for i, n := range numbers {
				source := d.present[positions[i]]
				if source == rank {
					shards[n] = slotOf(from, d.like).shard(which, g.stripeOf(d.lost, c), n)
					continue
				}
				shards[n] = expect(make([]byte, length))
				recvs = append(recvs, mpicx.Recv(x.comm, shards[n], source, 0))
				x.fetched += int64(length)
			}
			if err := future.WaitAll(x.ctx, recvs...); err != nil {
				return err
			}
			chunk, err := decode(g.scheme, shards, c)
			if err != nil {
				return err
			}
			if g.k == 1 {
				data = chunk
			} else {
				data = append(data, chunk...)
			}
		}
		all, err := splitBlob(data)
		if err != nil {
			return fmt.Errorf("%w: rank %d of version %d", err, d.like.Members[d.lost], d.like.Key.Version)
		}
		x.decoded[which] = data
		for _, part := range d.parts {
			r := x.records[part]
			r[which] = all[part]
			x.records[part] = r
		}
	}
	return nil
}

// isOneBlob says whether the parts are the parts of the last decoded blobs.
func (x *fetching) isOneBlob(parts []int) bool {
	for _, b := range x.decoded {
		records, err := splitBlob(b)
		if err != nil || !sameParts(parts, slices.Collect(maps.Keys(records))) {
			return false
		}
	}
	return true
}
