package checkpoint

import (
	"context"
	"fmt"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
)

// fetch carries out this rank's part of a retrieval. It returns what this rank then has, and which
// of its files are bad, and throws other errors. Messages between two ranks are in the order of the
// retrieval. A rank begins everything that it sends before it waits for the first message. So ranks
// cannot wait for each other in a circle. All messages have the same tag: messages of two ranks do
// not overtake each other (F5), and both ranks go through decodes and reads in the same order, the
// decodes first. If an error or a death interrupts this, from still has all it had.
func (p *retrieval) fetch(ctx context.Context, s *Store, from *Store) (x *fetching, bad []stored) {
	rank := s.comm.Rank()
	x = &fetching{ctx: ctx, comm: s.comm, from: from, records: make(map[int][2][]byte), blobs: make(map[int][2][]byte)}
	// These records are in the slot's memory, and are not copied.
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
		// A damaged file is no error of its reader yet: the adopter waits for two messages, so it
		// gets two that are empty. After that all ranks learn of it and choose again: see
		// Store.recover.
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
		// The records come after all shards that the same rank sends.
		if r.adopter != rank || r.reader == rank {
			continue
		}
		var records [2][]byte
		for i := range records {
			// The message says its length. This rank does not know it: it has not seen the header
			// of the file.
			records[i] = mpicx.RecvSlice[byte](s.comm, r.reader, 0).MustGet(ctx)
			x.fetched += int64(len(records[i]))
		}
		x.records[r.file.Part] = records
	}
	// Until the sends have ended the library reads the memory of the slots and records (F4).
	mpicx.Throw(future.WaitAll(ctx, x.sends...))
	s.count(func(c *Stats) { c.Fetched, c.Sent = c.Fetched+x.fetched, c.Sent+x.sent })
	return x, bad
}

// A fetching is the state of one rank while it carries out its part of a retrieval. It belongs to
// the goroutine that calls Open or Rejoin.
type fetching struct {
	ctx           context.Context
	comm          *mpicx.Comm
	from          *Store // what this rank has in memory
	sends         []future.Waiter
	records       map[int][2][]byte // by part
	blobs         map[int][2][]byte // by part: new blobs of this part alone, as far as there are any
	fetched, sent int64
}

// give sends the shards that this rank has to the adopter. The loops are those of decode and blob,
// so the shards leave in the order in which the adopter expects them.
func (x *fetching) give(d *decoding) {
	g := d.like.group()
	for which := range d.like.Chunk {
		for c := range g.k {
			ranks, shards := d.sources(c)
			for i, shard := range shards {
				if ranks[i] == x.comm.Rank() {
					b := x.from.slotLike(d.like).shard(which, g.stripeOf(d.lost, c), shard)
					x.sends = append(x.sends, mpicx.Send(x.comm, b, d.adopter, 0))
					x.sent += int64(len(b))
				}
			}
		}
	}
}

// decode computes the blobs of the lost member of a group. A blob that was computed from shards has
// no checksum. Its records are at least checked for their lengths, because wrong ones would make
// this rank panic.
func (x *fetching) decode(d *decoding) {
	for which := range d.like.Chunk {
		b, isNew := x.blob(d, which)
		all, err := splitBlob(b)
		if err != nil {
			mpicx.Throw(fmt.Errorf("%w: rank %d of version %d", err, d.like.Members[d.lost], d.like.Key.Version))
		}
		// Parts of the blob that have another owner are left out.
		for _, part := range d.parts {
			r, whole := x.records[part], x.blobs[part]
			if r[which] = all[part]; isNew && len(all) == 1 {
				whole[which] = b
			}
			x.records[part], x.blobs[part] = r, whole
		}
	}
}

// join returns a blob of parts, which is not copied if it is there already.
func (x *fetching) join(parts []int, which int) []byte {
	if len(parts) == 1 && x.blobs[parts[0]][which] != nil {
		return x.blobs[parts[0]][which]
	}
	var records [][]byte
	for _, part := range parts {
		records = append(records, x.records[part][which])
	}
	return joinBlob(records)
}

// blob computes one of the blobs of a lost member, chunk by chunk. isNew says that nothing else
// uses its memory. One chunk at a time: a rank needs memory for k shards at once, not for all
// shards of all chunks. The padding at the end stays, since a blob says its length.
func (x *fetching) blob(d *decoding, which int) (data []byte, isNew bool) {
	g, length := d.like.group(), d.like.Chunk[which]
	for c := range g.k {
		ranks, numbers := d.sources(c)
		shards := make([][]byte, g.k+g.m)
		var recvs []future.Waiter
		for i, n := range numbers {
			if ranks[i] == x.comm.Rank() {
				shards[n] = x.from.slotLike(d.like).shard(which, g.stripeOf(d.lost, c), n)
				continue
			}
			// The holding has the length: all shards of a group are equally long in a version.
			shards[n] = expect(make([]byte, length))
			recvs = append(recvs, mpicx.Recv(x.comm, shards[n], ranks[i], 0))
			x.fetched += int64(length)
		}
		mpicx.Throw(future.WaitAll(x.ctx, recvs...))
		chunk, err := decode(g.scheme, shards, c)
		mpicx.Throw(err)
		switch {
		// A copy is the whole blob. It may be memory of a slot, and is only read.
		case g.k == 1:
			return chunk, len(recvs) > 0
		case c == 0:
			data = expect(make([]byte, 0, g.k*length))
		}
		data = append(data, chunk...)
	}
	return data, true
}
