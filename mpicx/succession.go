package mpicx

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/mpicx/go-mpicx/internal/errchan"
)

// A succession is the record of what Replace has made of the world so far. It is the same at all
// members of the newest communicator.
type succession struct {
	line  int         // number of communicators so far, including the world
	used  int         // number of spares, or fresh ranks, that were taken so far
	taken map[int]int // a member's incarnation, by its rank in the job; 0 is left out
}

// name returns the name of the newest communicator.
func (s succession) name() string { return fmt.Sprintf("world.replace%d", s.line-1) }

// note returns the note of a proposal to Replace. It tells spares that are taken what they need to
// know of the communicator with the given members, made by depth Shrinks of the newest:
//
//	line, depth     4 bytes each, the most significant first: the later of two notes is greater
//	used
//	members         how many runs of consecutive ranks, and the first rank and length of each
//	taken           how many, and for each the rank and the incarnation, by rank
func (s succession) note(depth int, members []int) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(s.line))
	b = binary.BigEndian.AppendUint32(b, uint32(depth))
	b = binary.AppendUvarint(b, uint64(s.used))
	var runs []byte
	n := 0
	for i := 0; i < len(members); n++ {
		first := i
		for i++; i < len(members) && members[i] == members[i-1]+1; i++ {
		}
		runs = binary.AppendUvarint(binary.AppendUvarint(runs, uint64(members[first])), uint64(i-first))
	}
	b = append(binary.AppendUvarint(b, uint64(n)), runs...)
	n, pairs := 0, []byte(nil)
	for _, r := range slices.Sorted(maps.Keys(s.taken)) {
		if slices.Contains(members, r) {
			n++
			pairs = binary.AppendUvarint(binary.AppendUvarint(pairs, uint64(r)), uint64(s.taken[r]))
		}
	}
	return append(binary.AppendUvarint(b, uint64(n)), pairs...)
}

// readNote reads a note. The job has size ranks.
func readNote(b []byte, size int) (s succession, members []int, err error) {
	d := errchan.NewReader(b)
	var head [8]byte
	for i := range head {
		head[i] = d.Byte()
	}
	s = succession{int(binary.BigEndian.Uint32(head[:])), d.Below(size+1, "number of fresh ranks"), make(map[int]int)}
	for range d.Below(size+1, "number of runs") {
		first := d.Below(size, "rank")
		for i := range d.Below(size-first+1, "number of ranks") {
			members = append(members, first+i)
		}
		if len(members) > size {
			d.Fail(fmt.Errorf("more members than %d ranks", size))
			break
		}
	}
	for range d.Below(size+1, "number of places") {
		r := d.Below(size, "rank")
		s.taken[r] = int(d.Uvarint())
	}
	if err := d.End(); err != nil {
		return succession{}, nil, fmt.Errorf("note of Replace, %d bytes: %w", len(b), err)
	}
	return s, members, nil
}
