package mpicx

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/mpicx/go-mpicx/internal/errchan"
)

// A succession says what Replace has made of the world so far, the same at all members of the
// newest communicator.
type succession struct {
	line  int         // how many there have been, the world among them
	taken map[int]int // how often a member's place had been taken over when it got it; by rank in the job
}

// name is that of the newest.
func (s succession) name() string { return fmt.Sprintf("world.replace%d", s.line-1) }

// note is what those need to know who are to be taken into the communicator that replaces one
// with the members, which depth Shrinks have made of the newest:
//
//	line, depth     4 bytes each, the most significant first: of two notes the later is greater
//	members         how many runs of consecutive ranks, and of each its first and its length
//	taken           how many, and the rank and number of each, by rank
func (s succession) note(depth int, members []int) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(s.line))
	b = binary.BigEndian.AppendUint32(b, uint32(depth))
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
	s = succession{int(binary.BigEndian.Uint32(head[:])), make(map[int]int)}
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
		return succession{}, nil, fmt.Errorf("what Replace was told of %d bytes: %w", len(b), err)
	}
	return s, members, nil
}
