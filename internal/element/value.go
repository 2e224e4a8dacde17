package element

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"reflect"
)

// An Error says one of three things: elements cannot be of a type, a value cannot be encoded, or a
// message does not contain a value of the type.
type Error struct {
	text string
	err  error // of encoding/gob, or nil
}

func (e *Error) Error() string { return e.text }
func (e *Error) Unwrap() error { return e.err }

// Encode encodes v, or what v points to, by encoding/gob. Gob gets exactly one pointer: it needs
// one for an encoder with a pointer receiver, and panics if there are more. A panic of T's own
// encoder is an error too.
func Encode[T any](v T) (_ []byte, err error) {
	defer explain(&err, func() string { return fmt.Sprintf("value of type %T", v) })
	p := reflect.ValueOf(&v)
	for p.Elem().Kind() == reflect.Pointer {
		if p = p.Elem(); p.IsNil() {
			return nil, errors.New("nil pointer, expected one to a value")
		}
	}
	var b bytes.Buffer
	err = gob.NewEncoder(&b).EncodeValue(p)
	return b.Bytes(), err
}

// Decode is the inverse of Encode. The bytes come from another process. If they are no T, or if T's
// own decoder panics, the result is an error.
func Decode[T any](b []byte) (v T, err error) {
	defer explain(&err, func() string { return fmt.Sprintf("message of %d bytes is no %T", len(b), v) })
	err = gob.NewDecoder(bytes.NewReader(b)).Decode(&v)
	return v, err
}

// explain, deferred, makes *err or a panic an Error about the value.
func explain(err *error, about func() string) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("panic: %v", p)
	}
	if *err != nil {
		*err = &Error{about() + ": " + (*err).Error(), *err}
	}
}

// DecodeAll decodes each of parts; nil stays nil.
func DecodeAll[T any](parts [][]byte) ([]T, error) {
	if parts == nil {
		return nil, nil
	}
	vs := make([]T, len(parts))
	for i, b := range parts {
		var err error
		if vs[i], err = Decode[T](b); err != nil {
			return nil, err
		}
	}
	return vs, nil
}
