package file

import (
	"cmp"
	"encoding/binary"
	"io"
	"slices"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/internal/element"
)

// A collective write has two phases (Thakur, Gropp, Lusk: "Data Sieving and Collective I/O in
// ROMIO", 1999). The part of the file that the ranks write is divided into aligned windows, each
// of one rank, its writer. In each round the ranks send the writers what they have for their
// windows, and each writer writes its window in few large pieces. So pieces of a few KiB, of all
// ranks in turn, do not become as many small writes.

const (
	aligned = 1 << 20 // windows begin at multiples
	window  = 4 << 20 // bytes of a window
)

// WriteAll is [Write] by all ranks together (MPI_File_iwrite_at_all): each writes what it has in
// its view, possibly nothing. Few ranks write to the file, in large pieces. Where the pieces of
// two ranks overlap, one of them is written. An error of the file system is an [*Error] at all
// ranks.
func WriteAll[T any](f *File, at int64, buf []T) *future.Future[struct{}] {
	return f.all("WriteAll", at, element.Of(buf), (*File).writeAll)
}

// ReadAll is [Read] by all ranks together (MPI_File_iread_at_all). If the file ends before what a
// rank reads, all ranks get an [*Error] in which errors.Is finds io.ErrUnexpectedEOF. Pieces that
// are close to each other are read together.
func ReadAll[T any](f *File, at int64, buf []T) *future.Future[struct{}] {
	return f.all("ReadAll", at, element.Of(buf), (*File).readAll)
}

// all begins a collective operation on a buffer. A rank whose arguments are bad takes part, too:
// all ranks get its error.
func (f *File) all(name string, at int64, buf element.Buffer, move func(*File, *operation, []span, []byte, error) error) *future.Future[struct{}] {
	f.mu.Lock()
	places, bad := f.places(name, at, buf)
	f.mu.Unlock()
	return f.together(name, func(op *operation) error {
		return f.settle(op, name, move(f, op, places, buf.Bytes, bad))
	})
}

// writeAll is WriteAll after its settle. It returns this rank's error.
func (f *File) writeAll(op *operation, places []span, b []byte, bad error) error {
	p, err := f.plan(op, places, bad)
	if err != nil {
		return err
	}
	for round := range p.rounds {
		x := &shuffle{plan: p, round: round, places: places, from: b}
		if err := op.exchange(x); err != nil {
			return err
		}
		if _, failed := each(op, x.got, x.bytes, f.file.WriteAt); failed != nil && bad == nil {
			bad = failed // the other ranks need the next rounds
		}
	}
	return bad
}

// A plan divides what the ranks write.
type plan struct {
	begin   int64 // of the first window
	writers int
	rounds  int
	stride  int // between the ranks that write
}

// plan makes a plan for the places of all ranks. It is the same at all ranks.
func (f *File) plan(op *operation, places []span, bad error) (p plan, err error) {
	var mine span
	if len(places) > 0 && bad == nil {
		mine.At = slices.MinFunc(places, func(a, b span) int { return cmp.Compare(a.At, b.At) }).At
		for _, s := range places {
			mine.Len = max(mine.Len, s.end()-mine.At)
		}
	}
	all, err := gather(op, mine)
	if err != nil {
		return p, err
	}
	first, last := int64(-1), int64(0)
	for _, s := range all {
		if s.Len > 0 {
			if first < 0 || s.At < first {
				first = s.At
			}
			last = max(last, s.end())
		}
	}
	if first < 0 {
		return p, nil
	}
	p.begin = first / aligned * aligned
	up := func(n, unit int64) int64 { return (n + unit - 1) / unit }
	whole := last - p.begin
	p.writers = int(min(int64(len(all)), up(whole, window)))
	p.stride = len(all) / p.writers
	p.rounds = int(up(whole, window*int64(p.writers)))
	return p, nil
}

// at returns the window of a writer in a round. The windows of a round are next to each other.
func (p *plan) at(round, writer int) span {
	return span{p.begin + int64(round*p.writers+writer)*window, window}
}

// A shuffle is the exchange of one round.
type shuffle struct {
	plan
	round  int
	places []span // of this rank
	from   []byte // what belongs there

	// What a writer has got: the bytes of consecutive places.
	got   []span
	bytes []byte
	taken []int // ranks, in the order of the requests
}

// Step sends the writers their parts, and then puts together what this rank has got as a writer.
func (s *shuffle) Step(k int, x *collective.Exchange) (more bool) {
	self := -1
	if me := x.Rank(); me%s.stride == 0 && me/s.stride < s.writers {
		self = me / s.stride
	}
	if k == 0 {
		for r := range x.Size() {
			if self >= 0 && r != x.Rank() {
				x.Take(r)
				s.taken = append(s.taken, r)
			}
		}
		for w := range s.writers {
			if w != self {
				x.SendShared(w*s.stride, s.pack(s.at(s.round, w)))
			}
		}
		return true
	}
	if self < 0 {
		return false
	}
	own := s.at(s.round, self)
	space := make([]byte, own.Len)
	put := func(at int64, b []byte) {
		s.got = append(s.got, span{at, int64(len(b))})
		copy(space[at-own.At:], b)
	}
	for i := range s.taken {
		unpack(x.Taken(i), own, put)
	}
	s.each(own, put)
	s.join(space, own.At)
	return false
}

// each calls put with the parts of this rank that are in a window.
func (s *shuffle) each(in span, put func(at int64, b []byte)) {
	skip := int64(0)
	for _, p := range s.places {
		if from, to := max(p.At, in.At), min(p.end(), in.end()); from < to {
			put(from, s.from[skip+from-p.At:][:to-from])
		}
		skip += p.Len
	}
}

// pack returns the message for the writer of a window: for each part its place, its length and its
// bytes.
func (s *shuffle) pack(in span) (b []byte) {
	s.each(in, func(at int64, part []byte) {
		b = binary.LittleEndian.AppendUint64(b, uint64(at))
		b = binary.LittleEndian.AppendUint64(b, uint64(len(part)))
		b = append(b, part...)
	})
	return b
}

// unpack calls put with the parts in a message, as far as they are in the window.
func unpack(b []byte, in span, put func(at int64, b []byte)) {
	for len(b) >= 16 {
		s := span{int64(binary.LittleEndian.Uint64(b)), int64(binary.LittleEndian.Uint64(b[8:]))}
		b = b[16:]
		if s.Len < 0 || s.Len > int64(len(b)) || s.At < in.At || s.At > in.end()-s.Len {
			return // no rank sends this
		}
		put(s.At, b[:s.Len])
		b = b[s.Len:]
	}
}

// join makes of the places that were got the fewest, and of the space from begin on their bytes
// one after another.
func (s *shuffle) join(space []byte, begin int64) {
	slices.SortFunc(s.got, func(a, b span) int { return cmp.Compare(a.At, b.At) })
	var joined []span
	for _, g := range s.got {
		if last := len(joined) - 1; last >= 0 && g.At <= joined[last].end() {
			joined[last].Len = max(joined[last].Len, g.end()-joined[last].At)
		} else {
			joined = append(joined, g)
		}
	}
	used := int64(0)
	for _, g := range joined {
		used += int64(copy(space[used:], space[g.At-begin:][:g.Len]))
	}
	s.got, s.bytes = joined, space[:used]
}

// readAll is ReadAll before its settle.
func (f *File) readAll(op *operation, places []span, b []byte, bad error) error {
	for bad == nil && len(places) > 0 {
		n, bytes := near(places)
		bad = f.readNear(op, places[:n], b[:bytes])
		places, b = places[n:], b[bytes:]
	}
	return bad
}

// readNear reads places by one read, gaps included.
func (f *File) readNear(op *operation, places []span, b []byte) error {
	hull := span{places[0].At, places[len(places)-1].end() - places[0].At}
	to := b
	if len(places) > 1 {
		to = make([]byte, hull.Len)
	}
	n, err := f.read(op, []span{hull}, to)
	if err == nil && n < len(to) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil || len(places) == 1 {
		return err
	}
	for _, s := range places {
		b = b[copy(b[:s.Len], to[s.At-hull.At:]):]
	}
	return nil
}

// near returns how many of the places, from the first on, are to be read together, and their
// bytes: those within a MiB whose gaps are shorter than what is between them.
func near(places []span) (n int, bytes int64) {
	hull := places[0]
	for _, s := range places {
		next := s.end() - hull.At
		if n > 0 && (s.At < hull.end() || next > 1<<20 || next > 2*(bytes+s.Len)) {
			break
		}
		hull.Len = next
		bytes += s.Len
		n++
	}
	return n, bytes
}
