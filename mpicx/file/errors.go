package file

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/internal/element"
	"github.com/mpicx/go-mpicx/internal/hook"
)

// An Error is an error of the file system at one rank, as all ranks get it. errors.Is finds the
// error of the system at every rank: fs.ErrNotExist, syscall.ENOSPC for a full disk, and
// io.ErrUnexpectedEOF.
type Error struct {
	Op   string // the operation: "Open", "Sync", …
	File string // name
	Rank int    // the lowest rank that has failed
	Text string // of the error there

	cause error
}

func (e *Error) Error() string {
	return fmt.Sprintf("file: %s of %s at rank %d: %s", e.Op, e.File, e.Rank, e.Text)
}

func (e *Error) Unwrap() error { return e.cause }

// problem is an error at one rank as the others get it. The zero value is none.
type problem struct {
	Text  string
	Errno uint64 // 0: it is no error of the system
	Ended bool   // it is io.ErrUnexpectedEOF
}

func problemOf(err error) (p problem) {
	if err != nil {
		p.Text, p.Ended = err.Error(), errors.Is(err, io.ErrUnexpectedEOF)
		if no, ok := errors.AsType[syscall.Errno](err); ok {
			p.Errno = uint64(no)
		}
	}
	return p
}

// gather has each rank learn the first error of all ranks: bad is that of this one. Some ranks may
// learn it, and others get err, if a rank dies.
func (f *File) gather(op *operation, name string, own error) (bad *Error, err error) {
	all, err := gather(op, problemOf(own))
	if err != nil {
		return nil, err
	}
	for r, p := range all {
		if p.Text == "" {
			continue
		}
		e := &Error{Op: name, File: f.name, Rank: r, Text: p.Text}
		switch {
		case r == f.comm.Rank():
			e.cause = own
		case p.Errno != 0:
			e.cause = syscall.Errno(p.Errno)
		case p.Ended:
			e.cause = io.ErrUnexpectedEOF
		}
		return e, nil
	}
	return nil, nil
}

// gather carries out an exchange by which each rank gets the values of all, and finds out whether
// all are in the same operation.
func gather[T any](op *operation, v T) ([]T, error) {
	var a collective.AllgatherAny
	value, err := element.Encode(v)
	if err != nil {
		return nil, err
	}
	a.Send = append([]byte(op.name+"\x00"), value...)
	if err := op.exchange(&a); err != nil {
		return nil, err
	}
	for r, part := range a.Parts {
		name, rest, _ := bytes.Cut(part, []byte{0})
		if first, _, _ := bytes.Cut(a.Parts[0], []byte{0}); r > 0 && !bytes.Equal(name, first) {
			op.failed = fmt.Errorf("file: %s at rank 0, %s at rank %d, expected the same call at all ranks", first, name, r)
			return nil, op.failed
		}
		if r > 0 {
			a.Parts[r] = rest
		}
	}
	_, a.Parts[0], _ = bytes.Cut(a.Parts[0], []byte{0})
	return element.DecodeAll[T](a.Parts)
}

// An operation is one that its goroutine carries out. After an exchange has failed the others
// fail, too: an error of the communicator or a death has ended it.
type operation struct {
	hook.Background
	name   string
	failed error
}

// exchange carries out the next exchange.
func (op *operation) exchange(a collective.Algorithm) error {
	if op.failed == nil {
		ended := make(chan error, 1)
		op.Exchange(a, func(err error) { ended <- err })
		op.failed = <-ended
	}
	return op.failed
}

// settle ends a collective operation alike at all living ranks, own being the error of this one:
// with nil, the first error of a rank, or that of a death. A rank that dies before it has told its
// error to all makes no proposal, so the agreement ends with its death.
func (f *File) settle(op *operation, name string, own error) error {
	bad, err := f.gather(op, name, own)
	agreed := make(chan error, 1)
	op.Agree(func(err error) { agreed <- err })
	if over := <-agreed; over != nil || err != nil {
		return cmp.Or(over, err)
	}
	if bad != nil {
		return bad
	}
	return nil
}
