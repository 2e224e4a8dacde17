package checkpoint

import (
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"reflect"
	"unsafe"
)

// The data of one rank, its part, are a record: a header of 16 bytes (the part's number, the
// number of variables, the length of all), then the variables, each with a header of 16 bytes
// (kind, length of the name, length of the data), its name and its data, which are padded to
// multiples of 8. Numbers are little-endian; the elements of slices are as the machine has them.
//
// A blob is its length, in 8 bytes, which includes these 8 bytes, and then records.

const (
	sliceOf  = 1 << 8 // kind of a slice of scalars: this bit and a reflect.Kind
	gobKind  = 1 << 9 // kind of a value that gob has encoded
	blobHead = 8
	headLen  = 16
)

var errRecord = errors.New("checkpoint: the data are not a record of variables")

// A variable is a variable that the program protects.
type variable struct {
	name  string
	kind  uint32
	value reflect.Value // can be set
	once  bool
}

func newVariable(name string, v any) (*variable, error) {
	p := reflect.ValueOf(v)
	if p.Kind() != reflect.Pointer || p.IsNil() {
		return nil, fmt.Errorf("checkpoint: Protect(%q) of a %T, expected a pointer that is not nil", name, v)
	}
	x := &variable{name: name, value: p.Elem(), kind: gobKind}
	switch t := x.value.Type(); {
	case isScalar(t.Kind()):
		x.kind = uint32(t.Kind())
	case t.Kind() == reflect.Slice && isScalar(t.Elem().Kind()):
		x.kind = sliceOf | uint32(t.Elem().Kind())
	}
	return x, nil
}

func isScalar(k reflect.Kind) bool {
	return k >= reflect.Bool && k <= reflect.Complex128 && k != reflect.Uintptr
}

// bytes returns the variable's data: its memory, if it is of scalars.
func (x *variable) bytes() ([]byte, error) {
	switch {
	case x.kind == gobKind:
		var b bytes.Buffer
		v := x.value
		for ; v.Kind() == reflect.Pointer; v = v.Elem() { // gob would panic, or encode nothing
			if v.IsNil() {
				return nil, fmt.Errorf("checkpoint: variable %q: gob: a nil %s, expected a value", x.name, v.Type())
			}
		}
		if err := gob.NewEncoder(&b).EncodeValue(v); err != nil {
			return nil, fmt.Errorf("checkpoint: variable %q: %w", x.name, err)
		}
		return b.Bytes(), nil
	case x.kind&sliceOf != 0:
		return memory(x.value), nil
	}
	return unsafe.Slice((*byte)(x.value.Addr().UnsafePointer()), x.value.Type().Size()), nil
}

// memory returns the bytes of a slice of scalars.
func memory(slice reflect.Value) []byte {
	return unsafe.Slice((*byte)(slice.UnsafePointer()), slice.Len()*int(slice.Type().Elem().Size()))
}

// decoded checks data, and returns a function that sets the variable to it.
func (x *variable) decoded(s saved) (set func(), err error) {
	kind, data := s.Kind, s.Data
	if kind != x.kind {
		return nil, fmt.Errorf("checkpoint: variable %q was saved as %s, expected %s", x.name, kindName(kind), x.value.Type())
	}
	switch {
	case kind == gobKind:
		v := reflect.New(x.value.Type())
		if err := ungob(data, v); err != nil {
			return nil, fmt.Errorf("checkpoint: variable %q: %w", x.name, err)
		}
		return func() { x.value.Set(v.Elem()) }, nil
	case kind&sliceOf != 0:
		size := int(x.value.Type().Elem().Size())
		if len(data)%size != 0 {
			return nil, errRecord
		}
		return func() {
			n := len(data) / size
			if x.value.Cap() < n || x.value.IsNil() {
				x.value.Set(reflect.MakeSlice(x.value.Type(), n, n))
				expect(memory(x.value))
			}
			x.value.SetLen(n)
			copy(memory(x.value), data)
		}, nil
	}
	to, _ := x.bytes()
	if len(data) != len(to) {
		return nil, errRecord
	}
	return func() { copy(to, data) }, nil
}

func kindName(kind uint32) string {
	switch {
	case kind == gobKind:
		return "a gob"
	case kind&sliceOf != 0:
		return "[]" + reflect.Kind(kind&^sliceOf).String()
	}
	return reflect.Kind(kind).String()
}

// ungob decodes data that may be no gob. If the decoder panics, this is an error.
func ungob(data []byte, v reflect.Value) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("gob: panic: %v", p)
		}
	}()
	return gob.NewDecoder(bytes.NewReader(data)).DecodeValue(v)
}

func padded(n int) int { return (n + 7) &^ 7 }

// newBlob makes a blob with one record, of vars, in the memory of an old blob.
func newBlob(old []byte, part int, vars []*variable) ([]byte, error) {
	data := make([][]byte, len(vars))
	length := headLen
	for i, x := range vars {
		var err error
		if data[i], err = x.bytes(); err != nil {
			return old, err
		}
		length += headLen + padded(len(x.name)) + padded(len(data[i]))
	}
	b := old[:0]
	if cap(b) < blobHead+length {
		b = expect(make([]byte, 0, blobHead+length))
	}
	le := binary.LittleEndian
	b = le.AppendUint64(b, uint64(blobHead+length))
	b = le.AppendUint32(b, uint32(part))
	b = le.AppendUint32(b, uint32(len(vars)))
	b = le.AppendUint64(b, uint64(length))
	for i, x := range vars {
		b = le.AppendUint32(b, x.kind)
		b = le.AppendUint32(b, uint32(len(x.name)))
		b = le.AppendUint64(b, uint64(len(data[i])))
		b = pad(append(b, x.name...))
		b = pad(append(b, data[i]...))
	}
	return b, nil
}

func pad(b []byte) []byte { return append(b, make([]byte, padded(len(b))-len(b))...) }

// joinBlob makes a blob of records.
func joinBlob(records [][]byte) []byte {
	length := blobHead
	for _, r := range records {
		length += len(r)
	}
	b := binary.LittleEndian.AppendUint64(expect(make([]byte, 0, length)), uint64(length))
	for _, r := range records {
		b = append(b, r...)
	}
	return b
}

// splitBlob returns the records of a blob, which may be padded, by part.
func splitBlob(b []byte) (map[int][]byte, error) {
	if len(b) < blobHead {
		return nil, errRecord
	}
	n := binary.LittleEndian.Uint64(b)
	if n < blobHead || n > uint64(len(b)) {
		return nil, errRecord
	}
	records := make(map[int][]byte)
	for b = b[blobHead:n]; len(b) > 0; {
		if len(b) < headLen {
			return nil, errRecord
		}
		length := binary.LittleEndian.Uint64(b[8:])
		if length < headLen || length > uint64(len(b)) {
			return nil, errRecord
		}
		records[int(binary.LittleEndian.Uint32(b))] = b[:length:length]
		b = b[length:]
	}
	return records, nil
}

// A saved is one variable of a record.
type saved struct {
	Kind uint32
	Data []byte
}

// variablesOf returns the variables of records, by name.
func variablesOf(records ...[]byte) (map[string]saved, error) {
	vars := make(map[string]saved)
	for _, b := range records {
		if len(b) < headLen {
			return nil, errRecord
		}
		count := binary.LittleEndian.Uint32(b[4:])
		b = b[headLen:]
		for range count {
			if len(b) < headLen {
				return nil, errRecord
			}
			kind := binary.LittleEndian.Uint32(b)
			name, data := uint64(binary.LittleEndian.Uint32(b[4:])), binary.LittleEndian.Uint64(b[8:])
			b = b[headLen:]
			if name > uint64(len(b)) || data > uint64(len(b)) || uint64(padded(int(name)))+uint64(padded(int(data))) > uint64(len(b)) {
				return nil, errRecord
			}
			at := padded(int(name))
			vars[string(b[:name])] = saved{kind, b[at:][:data:data]}
			b = b[at+padded(int(data)):]
		}
		if len(b) > 0 {
			return nil, errRecord
		}
	}
	return vars, nil
}

// restore sets all variables from the records, or none.
func restore(vars []*variable, records ...[]byte) error {
	all, err := variablesOf(records...)
	if err != nil {
		return err
	}
	var sets []func()
	for _, x := range vars {
		s, ok := all[x.name]
		if !ok {
			return fmt.Errorf("checkpoint: there is no variable %q in what was saved", x.name)
		}
		set, err := x.decoded(s)
		if err != nil {
			return err
		}
		sets = append(sets, set)
	}
	for _, set := range sets {
		set()
	}
	return nil
}
