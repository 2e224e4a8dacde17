package checkpoint

import (
	"cmp"
	"slices"
)

// An inventory is a rank's contribution to an agreement, and to the meeting of all ranks in Open
// and Rejoin. It names what a rank has and carries no data. All ranks get the inventories of all
// ranks in one exchange, and compute from them what to do. This may depend on nothing else, such as
// a rank's own directory.
type inventory struct {
	Slots    []*holding // in an agreement, of versions that count
	Stamp    uint64
	Saves    int
	Saved    int   // the newest version that counted, as far as this rank knows; -1: none
	Complete []key // versions that have all files, as far as this rank knows

	// The other fields are for Open and Rejoin alone.

	Files []stored // that are not damaged
	// They matter only if a version cannot be restored: then they tell whether it is lost, or has
	// never been complete.
	Counted []key // versions in a manifest, or with a damaged file: an interrupted Save leaves none
	Torn    bool  // the manifest could not be read
	// A rank that rejoins brings along what its store could not restore when it was opened. Else a
	// second repair would end in ErrNone, and the program would begin anew without having been
	// told.
	Lost *LostError // what was lost before, of which nothing may be left
	Err  string     // why the directory is unreadable
	err  error      // the same at this rank
}

// A retrieval says how all ranks together get all parts of a version. It depends only on the
// inventories, so all ranks compute the same one. It uses three sources, in this order: memory of
// the rank that saved or adopted a part, shards in the memory of other ranks, files. Each needs
// more messages, or more time, than the one before.
type retrieval struct {
	key
	// A part has one owner, so no part is adopted twice.
	owner   []int       // by part: the rank that has it in memory and keeps it, or gets it; -1: none
	mine    []int       // by rank: its own part; -1: none
	groups  []*decoding // that have members left, the newest first
	decodes []*decoding
	reads   []reading
}

// A decoding is a lost member of a group, and its parts, which the adopter computes from the shards
// of other members. There are two numberings. like has the ranks of the communicator in which the
// slot was protected. present, owner and adopter have the ranks of the communicator on which Open
// was called. A position in the group is the same in both.
type decoding struct {
	like    *holding // the holding of a member of the same group, if possible of one that is whole
	lost    int      // the lost member's position
	present []int    // by position: the rank that has this member's slot; -1: lost
	// A member that is not whole has its own data, but its shards and its padding may be of another
	// version.
	whole   []bool // by position: the member has all its shards
	parts   []int
	adopter int
}

// A reading is a part that a rank has in a file. The rank that sees the file need not be the one
// that gets the part: directories may be of one machine.
type reading struct {
	file            stored
	reader, adopter int
}

// choose returns the retrieval of the newest version of which nothing is missing. If there is none,
// but some version counted, it returns an error that says what is missing of the newest such one. A
// version that never counted is chosen, too, if all its parts are there: they are of one Save, so
// they fit together, and it is newer. If parts of it are missing, it is passed over without an
// error, because no program was told that it had been saved. A version counts as lost only if
// something shows that it counted: a manifest, a damaged file, or a rank that remembers a version
// at least as new.
func choose(all []inventory) (*retrieval, *LostError) {
	var keys, counted []key
	var lost, before *LostError
	saved, torn := -1, false
	for _, inv := range all {
		saved, torn = max(saved, inv.Saved), torn || inv.Torn
		for _, h := range inv.Slots {
			keys = append(keys, h.Key)
		}
		for _, f := range inv.Files {
			keys = append(keys, f.Key)
		}
		counted = append(counted, inv.Counted...)
		before = cmp.Or(before, inv.Lost)
	}
	keys = append(keys, counted...)
	slices.SortFunc(keys, newest)
	for _, k := range slices.Compact(keys) {
		p, missing := retrievalOf(k, all)
		if len(missing) == 0 {
			return p, nil
		}
		// A damaged manifest may have listed any version.
		if lost == nil && (torn || slices.Contains(counted, k) || k.Version <= saved) {
			lost = &LostError{k.Version, missing}
		}
	}
	if lost = cmp.Or(lost, before); lost == nil && (torn || saved >= 0) {
		lost = &LostError{Version: saved}
	}
	return nil, lost
}

// retrievalOf returns how to get all parts of a version, and the parts that nobody has. The order
// of its steps matters. A part that a living rank has in memory is never decoded, a part that can
// be decoded is never read, and each step leaves out the ranks that have got a part of their own.
func retrievalOf(k key, all []inventory) (_ *retrieval, missing []int) {
	p := &retrieval{key: k, owner: slices.Repeat([]int{-1}, k.Parts), mine: slices.Repeat([]int{-1}, len(all))}
	// After several repairs a rank may have the version in several layouts.
	own := make([]*holding, len(all)) // by rank: its newest slot of the version
	for r, inv := range all {
		for _, h := range inv.Slots {
			if h.Key == k && (own[r] == nil || h.Stamp > own[r].Stamp) {
				own[r], p.mine[r] = h, h.mine()
			}
		}
	}
	for _, adopted := range []bool{false, true} { // the rank that has saved a part is preferred to one that has adopted it
		for r, h := range own {
			if h == nil {
				continue
			}
			for i, part := range h.Held[h.Pos] {
				if part >= 0 && adopted == (i > 0) && p.owner[part] < 0 {
					p.owner[part] = r
				}
			}
		}
	}
	p.groups = groupsOf(k, all)
	p.decode(p.places())
	p.read(all, p.places()) // without the ranks that decode their own parts
	for part, r := range p.owner {
		if r < 0 {
			missing = append(missing, part)
		}
	}
	return p, missing
}

// decode plans the decodings of lost members of groups. The rank in the place of a lost member
// adopts its parts, or else the next member of the group. One adopter takes over all parts of a
// lost member, those that the member itself had adopted included, because they are in one blob and
// are computed together. A member that has too few shards left in one group may have enough in an
// older one, which is why all groups of the version are looked at.
func (p *retrieval) decode(places map[int]int) {
	for _, g := range p.groups {
		for lost, r := range g.present {
			if r >= 0 {
				continue
			}
			d := *g
			d.lost, d.adopter = lost, -1
			for _, part := range d.like.Held[lost] {
				if part < 0 || p.owner[part] >= 0 {
					continue
				}
				d.parts = append(d.parts, part)
				if at, ok := places[part]; ok && d.adopter < 0 {
					d.adopter = at
				}
			}
			if len(d.parts) == 0 || !d.possible() {
				continue
			}
			if d.adopter < 0 {
				like, next := d.like.group(), lost
				// It ends: a group of which no member is left is not in the list.
				for d.present[like.at(next)] < 0 {
					next++
				}
				d.adopter = d.present[like.at(next)]
			}
			for _, part := range d.parts {
				p.adopt(places, part, d.adopter)
			}
			p.decodes = append(p.decodes, &d)
		}
	}
}

// adopt notes that a rank will have a part. A rank in the place of the part's rank gets it as its
// own, and Restore can set its variables. Any other adopter only keeps the part, for Load.
func (p *retrieval) adopt(places map[int]int, part, adopter int) {
	p.owner[part] = adopter
	if at, ok := places[part]; ok && at == adopter && p.mine[adopter] < 0 {
		p.mine[adopter] = part
	}
}

// groupsOf returns the groups of a version that have members left, the newest first. A group is
// known by its stamp and its first member: the groups of one agreement have no member in common.
// The holding of any member describes the whole group, so one that is left is enough.
func groupsOf(k key, all []inventory) (groups []*decoding) {
	for r, inv := range all {
		for _, h := range inv.Slots {
			if h.Key != k {
				continue
			}
			at := slices.IndexFunc(groups, func(d *decoding) bool {
				return d.like.Stamp == h.Stamp && d.like.Members[0] == h.Members[0]
			})
			if at < 0 {
				at = len(groups)
				d := &decoding{like: h, present: slices.Repeat([]int{-1}, len(h.Members)), whole: make([]bool, len(h.Members))}
				groups = append(groups, d)
			}
			groups[at].present[h.Pos], groups[at].whole[h.Pos] = r, h.Whole
			if h.Whole {
				groups[at].like = h // a whole member knows the lengths
			}
		}
	}
	slices.SortStableFunc(groups, func(a, b *decoding) int { return cmp.Compare(b.like.Stamp, a.like.Stamp) })
	return groups
}

// places returns, by part, the ranks that have no part of their own and are in the place of the
// part's rank: they have its number in a communicator of the same size. With Replace a new rank has
// the number of the dead one (R2), so it is in its place. After a Shrink ranks have other numbers
// than in the Save. If one of them is replaced after that, its part is the one that the holdings of
// as many ranks have for its number: only a Shrink changes numbers.
func (p *retrieval) places() map[int]int {
	shrunk := slices.IndexFunc(p.groups, func(d *decoding) bool { return len(d.like.Own) == len(p.mine) })
	places := make(map[int]int)
	for r, mine := range p.mine {
		part := -1
		if shrunk >= 0 {
			part = p.groups[shrunk].like.Own[r]
		} else if p.Parts == len(p.mine) {
			part = r
		}
		if mine < 0 && part >= 0 {
			places[part] = r
		}
	}
	return places
}

// isAgain says whether a new group is this group again, with the same data. Where a member has lost
// them, they have been decoded or read. The blobs are then the same bytes as before, because each
// has one part. A blob of several parts may have them in another order.
func (d *decoding) isAgain(h *holding) bool {
	one := func(a, b []int) bool { return len(a) == 1 && slices.Equal(a, b) }
	g := d.like
	return g.K == h.K && g.M == h.M && slices.Equal(g.Members, h.Members) && slices.EqualFunc(g.Held, h.Held, one)
}

// keeps says whether the member at a position has all its shards, and has kept its number.
func (d *decoding) keeps(at int) bool { return d.whole[at] && d.present[at] == d.like.Members[at] }

// sources returns the ranks and numbers of k shards of the stripe of a chunk, the adopter's first.
// It returns nil if there are fewer than k. Shards of the adopter come first because they need no
// message. Any k shards of a stripe do, as the code is a Reed-Solomon code, and copies are the case
// k = 1. Data of a member that is not whole are not used: they may be shorter than a chunk says.
func (d *decoding) sources(chunk int) (ranks, shards []int) {
	g := d.like.group()
	stripe := g.stripeOf(d.lost, chunk)
	for _, own := range []bool{true, false} {
		for i := range g.k + g.m {
			at := g.holder(stripe, i)
			r := d.present[at]
			if d.whole[at] && own == (r == d.adopter) && len(shards) < g.k {
				ranks, shards = append(ranks, r), append(shards, i)
			}
		}
	}
	if len(shards) < g.k {
		return nil, nil
	}
	return ranks, shards
}

// possible says whether there are enough shards for all chunks. Each chunk is of another stripe,
// with shards at other positions, so each has to be looked at.
func (d *decoding) possible() bool {
	for c := range d.like.K {
		if ranks, _ := d.sources(c); ranks == nil {
			return false
		}
	}
	return true
}

// read plans for parts that are in files only. The rank in the place of a part adopts it. The ranks
// share the parts that have no rank in their place. Several ranks may see the file. The lowest
// reads it, and if it finds the file damaged, it leaves it out of its next inventory, so that the
// next lowest is chosen.
func (p *retrieval) read(all []inventory, places map[int]int) {
	for part, r := range p.owner {
		if r >= 0 {
			continue
		}
		file := stored{p.key, part}
		reader := slices.IndexFunc(all, func(inv inventory) bool { return slices.Contains(inv.Files, file) })
		if reader < 0 {
			continue
		}
		adopter, ok := places[part]
		if !ok {
			adopter = part % len(all)
		}
		p.adopt(places, part, adopter)
		p.reads = append(p.reads, reading{file, reader, adopter})
	}
}

// held returns the parts of each rank after the retrieval, its own first or, if it has none, -1.
// All ranks compute it for all, so the new holdings describe each member without another exchange.
func (p *retrieval) held() [][]int {
	held := make([][]int, len(p.mine))
	for r, mine := range p.mine {
		held[r] = []int{mine}
	}
	for part, r := range p.owner {
		if part != p.mine[r] {
			held[r] = append(held[r], part)
		}
	}
	return held
}
