package signature

import (
	"fmt"
	"strings"
)

// A Word is what a message carries. The zero Word fits every other.
//
// From the lowest bit, a Word has 7 bits for the Kind and 5 for the Element. If a
// point-to-point message has structs, 12 bits for their size and 40 for a digest of their
// layout follow. In a collective call, 5 bits for the operation, 20 for the root and 27 for the
// count follow.
type Word uint64

const (
	kindBits, elementBits, opBits, rootBits, countBits = 7, 5, 5, 20, 27

	elementAt = kindBits
	opAt      = elementAt + elementBits
	rootAt    = opAt + opBits
	countAt   = rootAt + rootBits

	sizeBits, digestBits = 12, 40
	sizeAt               = opAt
	digestAt             = sizeAt + sizeBits
)

// most is the greatest count that a word can hold. It stands for greater ones, too.
const most = 1<<countBits - 1

func field(v, at, bits uint64) Word      { return Word(v&(1<<bits-1)) << at }
func (w Word) field(at, bits int) uint64 { return uint64(w) >> at & (1<<bits - 1) }

// Message returns the word of a message of these elements.
func Message(of Element) Word { return field(uint64(of), elementAt, elementBits) }

// Structs returns the word of a message of structs of this size, whose layout has this digest.
func Structs(size int, digest uint64) Word {
	return Message(Struct) | field(uint64(min(size, 1<<sizeBits-1)), sizeAt, sizeBits) | field(digest, digestAt, digestBits)
}

// A Call is a collective call. Fields that calls of its Kind do not have are ignored.
type Call struct {
	Kind  Kind
	Op    int // index in Ops
	Root  int // of a call with a count for each rank: a digest of the counts, in bytes
	Of    Element
	Count int // of structs: in bytes
}

// Word returns the call as a word.
func (c Call) Word() Word {
	return (Word(c.Kind) | Word(c.Of)<<elementAt | Word(c.Op&(1<<opBits-1))<<opAt | Word(c.Root&(1<<rootBits-1))<<rootAt |
		Word(min(c.Count, most))<<countAt) & masks[c.Kind]
}

// masks have the bits of the fields that calls of each kind have.
var masks = func() (masks [1 << kindBits]Word) {
	for k, f := range forms {
		for _, part := range []struct {
			has      bool
			at, bits uint64
		}{
			{true, 0, kindBits}, {f.typed, elementAt, elementBits}, {f.reducing, opAt, opBits},
			{f.rooted || f.spread, rootAt, rootBits}, {f.counted, countAt, countBits},
		} {
			if part.has {
				masks[k] |= field(1<<part.bits-1, part.at, part.bits)
			}
		}
	}
	return masks
}()

// Call returns the call that a word encodes.
func (w Word) Call() Call {
	return Call{w.Kind(), int(w.field(opAt, opBits)), int(w.field(rootAt, rootBits)), w.Element(), int(w.field(countAt, countBits))}
}

// Kind returns the kind of the call; None: the word is of a point-to-point message.
func (w Word) Kind() Kind { return Kind(w.field(0, kindBits)) }

// Element returns the element of the message or call.
func (w Word) Element() Element { return Element(w.field(elementAt, elementBits)) }

// Fits says whether a rank that has made the call w may meet v: a rank whose own call was refused
// knows that, and may meet all.
func (w Word) Fits(v Word) bool { return w == v || w.fits(v) }

func (w Word) fits(v Word) bool {
	if w == 0 || v == 0 || w.Kind() == Refused {
		return true
	}
	if !w.Element().fits(v.Element()) || w.Kind() != v.Kind() {
		return false
	}
	compared := ^field(1<<elementBits-1, elementAt, elementBits)
	if w.Element() == Bytes || v.Element() == Bytes { // their count is in bytes
		if w.Kind() == None {
			return true
		}
		compared &^= field(1<<countBits-1, countAt, countBits)
		if k := w.Kind(); k < kinds && forms[k].counted && !w.asLongAs(v) {
			return false
		}
	}
	return w&compared == v&compared
}

// asLongAs says whether two calls have the same number of bytes, as far as their words show.
func (w Word) asLongAs(v Word) bool {
	n, bytes := w.length()
	m, others := v.length()
	return bytes == others || n == most && bytes < others || m == most && others < bytes
}

// length returns the count of a call, and its number of bytes, at least.
func (w Word) length() (count, bytes uint64) {
	count = w.field(countAt, countBits)
	return count, count * uint64(max(1, w.Element().Size())) // a struct's count is in bytes
}

// The operations of reductions: indices in Ops.
const (
	Sum = iota
	Prod
	Max
	Min
	LAnd
	BAnd
	LOr
	BOr
	LXor
	BXor
)

// Ops are the names of the operations.
var Ops = [...]string{"Sum", "Prod", "Max", "Min", "LAnd", "BAnd", "LOr", "BOr", "LXor", "BXor"}

// String returns the call, or the element of the message.
func (w Word) String() string {
	kind, element := w.Kind(), w.Element().String()
	switch {
	case kind == None && w.Element() == Struct:
		return fmt.Sprintf("struct of %d bytes", w.field(sizeAt, sizeBits))
	case kind == None:
		return element
	case kind >= kinds || kind == Refused:
		return kind.String()
	}
	f := &forms[kind]
	var args []string
	if f.reducing {
		op := w.field(opAt, opBits)
		if op < uint64(len(Ops)) {
			args = append(args, Ops[op])
		} else {
			args = append(args, fmt.Sprintf("Op(%d)", op))
		}
	}
	if f.rooted {
		args = append(args, fmt.Sprintf("root %d", w.field(rootAt, rootBits)))
	}
	switch n := w.field(countAt, countBits); {
	case f.counted && w.Element() == Struct:
		args = append(args, fmt.Sprintf("%d bytes of structs", n))
	case f.counted && n == most:
		args = append(args, fmt.Sprintf("%d or more × %s", n, element))
	case f.counted:
		args = append(args, fmt.Sprintf("%d × %s", n, element))
	case f.typed:
		args = append(args, element)
	}
	if len(args) == 0 {
		return f.name
	}
	return fmt.Sprintf("%s(%s)", f.name, strings.Join(args, ", "))
}
