package checkpoint

import (
	"cmp"
	"slices"
)

// A blob is the data of one rank, and the shards of other ranks' data that it keeps: parity j is of
// the stripe with the number of the rank's position minus j. After the exchange the data are k
// chunks long, padded with zeros. The chunks are as long as those of the rank with the most data,
// so all shards of a stripe have the same length.
type blob struct {
	data   []byte
	shards [][]byte
	chunk  int // length of a chunk and of a shard
}

func (b *blob) bytes() int64 {
	n := cap(b.data)
	for _, s := range b.shards {
		n += cap(s)
	}
	return int64(n)
}

// lend returns a blob of the same data. Neither blob may be written to while both are in use. The
// capacity ends with the data: if the borrower pads them, they move to memory of its own.
func (b *blob) lend() *blob { return &blob{data: b.data[:len(b.data):len(b.data)]} }

// A key identifies a version; it is the same in all its parts. Stamps count the agreements of all
// ranks and the Saves, so no two Saves have the same stamp, no matter how they are interrupted.
// Version alone is not enough: a program that has gone back saves the same version again, perhaps
// with other values. Parts of different keys are never put together.
type key struct {
	Version int
	Run     uint64 // of the job in which the version was saved
	Origin  uint64 // stamp of the Save
	Parts   int    // number of ranks in the Save
}

func newest(a, b key) int {
	return cmp.Or(cmp.Compare(b.Version, a.Version), cmp.Compare(b.Origin, a.Origin), cmp.Compare(b.Run, a.Run), cmp.Compare(b.Parts, a.Parts))
}

// A holding describes a slot to other ranks. It numbers ranks as they were at that time, also after
// a repair.
type holding struct {
	Key   key
	Stamp uint64 // of the agreement that determined the groups, or of a later Save; the same stamp means the same groups
	// Members, K and M are the group; Pos is this rank's position. Held has the parts of each
	// member, first its own, or -1 if it has none. After a Shrink some members have parts of dead
	// ranks too.
	Members []int
	K, M    int
	Pos     int
	Held    [][]int
	// Own has each rank's own part, or -1. It is nil if there are as many ranks as have saved the
	// version: then a rank's part has the number of the rank.
	Own   []int
	Chunk [2]int
	// Whole says that this rank has all shards that it keeps.
	Whole bool
}

func (h *holding) group() group { return group{h.Members, scheme{h.K, h.M}} }

// isLike says whether o is of the same version and layout.
func (h *holding) isLike(o *holding) bool { return o.Key == h.Key && o.Stamp == h.Stamp }

// mine returns this rank's own part, or -1.
func (h *holding) mine() int { return h.Held[h.Pos][0] }

// A slot is a version in memory: the blob of Once variables, which the next version may share, and
// the blob of the other variables.
type slot struct {
	holding
	blobs [2]*blob
	once  int // how many Once variables it has; -1: unknown
	// good says that the slot has the data of its version, whether the version counts or not.
	good bool
	// lent says that another slot shares the data.
	lent bool
}

const (
	once = iota
	changing
)

// shard returns shard i of a stripe, which this rank has.
func (s *slot) shard(which, stripe, i int) []byte {
	b, g := s.blobs[which], s.group()
	if i < s.K {
		return b.data[i*b.chunk:][:b.chunk]
	}
	return b.shards[g.at(s.Pos-stripe)]
}

// records returns the records of a part: of Once variables, and of the others.
func (s *slot) records(part int) (records [2][]byte, err error) {
	for i, b := range s.blobs {
		all, err := splitBlob(b.data)
		if err != nil {
			return records, err
		}
		records[i] = all[part]
	}
	return records, nil
}

// slotOf returns the newest slot of a version, or nil.
func (s *Store) slotOf(k key) (found *slot) {
	for _, o := range s.slots {
		if o.good && o.Key == k && (found == nil || o.Stamp > found.Stamp) {
			found = o
		}
	}
	return found
}

// slotLike returns the slot with the layout of h. A retrieval names a rank as a source, or as one
// that keeps its shards, only if its inventory had such a slot. Shards of the same version in
// another layout would be of other stripes.
func (s *Store) slotLike(h *holding) *slot {
	return s.slots[slices.IndexFunc(s.slots, func(o *slot) bool { return o.good && h.isLike(&o.holding) })]
}

// parts returns the parts that the slot has.
func (s *slot) parts() []int {
	return slices.DeleteFunc(slices.Clone(s.Held[s.Pos]), func(p int) bool { return p < 0 })
}
