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

// What is read back may be damaged, or come from another program: files have checksums, data that
// were computed from shards have none. So no length is believed before it is compared with the
// bytes that are there. What a program gets is an error, and never a panic or a slice beyond the
// data. A record does not say on which machine it was written: all ranks of a job, and a job that
// continues it, need the same byte order.

const (
	// Kinds are in files, so they must keep their numbers. An int is as long as on the machine that
	// has saved it.
	sliceOf  = 1 << 8 // kind of a slice of scalars: this bit and a reflect.Kind
	gobKind  = 1 << 9 // kind of a value that gob has encoded
	blobHead = 8
	headLen  = 16
)

var errRecord = errors.New("checkpoint: the data are not a record of variables")

// A variable is a variable that the program protects. The value is that to which the program's
// pointer leads. The program owns it: it is read only inside Save, and set only inside Restore and
// Load.
type variable struct {
	name string
	// It is saved beside the data, and compared when they come back: a []float64 is never read as a
	// []int64. The types of fields of a struct are the concern of gob.
	kind  uint32
	value reflect.Value // can be set
	once  bool
}

func newVariable(name string, v any) (*variable, error) {
	p := reflect.ValueOf(v)
	if p.Kind() != reflect.Pointer || p.IsNil() {
		return nil, fmt.Errorf("checkpoint: Protect(%q) of a %T, expected a pointer that is not nil", name, v)
	}
	// All that is no number and no slice of numbers is left to gob, which may refuse it. That is
	// found in the first Save, since only a value shows what gob thinks of it.
	x := &variable{name: name, value: p.Elem(), kind: gobKind}
	switch t := x.value.Type(); {
	case isScalar(t.Kind()):
		x.kind = uint32(t.Kind())
	case t.Kind() == reflect.Slice && isScalar(t.Elem().Kind()):
		x.kind = sliceOf | uint32(t.Elem().Kind())
	}
	return x, nil
}

// A named type of such a kind counts, too: only the kind decides about the layout in memory.
func isScalar(k reflect.Kind) bool {
	return k >= reflect.Bool && k <= reflect.Complex128 && k != reflect.Uintptr
}

// bytes returns the variable's data: its memory, if it is of scalars. The caller has to copy them
// before the program continues.
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

// decoded checks data, and returns a function that sets the variable to it. All that can fail is
// done before set is made. The data may be memory of a slot, which stays the store's own, so set
// copies them.
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
			// The slice keeps its memory if it can: other variables of the program may share it,
			// and large data need no second allocation. A slice that was nil in the Save comes back
			// empty, and not nil.
			if x.value.Cap() < n || x.value.IsNil() {
				x.value.Set(reflect.MakeSlice(x.value.Type(), n, n))
			}
			x.value.SetLen(n)
			copy(expect(memory(x.value)), data) // a new rank's slice may be new, too
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

// ungob decodes data that may be no gob. If the decoder panics, this is an error. A variable's own
// GobDecode runs here, too, and it sees the same bytes.
func ungob(data []byte, v reflect.Value) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("gob: panic: %v", p)
		}
	}()
	return gob.NewDecoder(bytes.NewReader(data)).DecodeValue(v)
}

// padded returns the length that n bytes take up. This keeps headers, and the elements of slices,
// at multiples of 8 from the beginning of the blob.
func padded(n int) int { return (n + 7) &^ 7 }

// newBlob makes a blob with one record, of vars, in the memory of an old blob. All variables are
// encoded before the first byte of the old blob is overwritten. If one of them cannot be, the
// caller gets the memory back for the next Save. As long as the sizes stay the same, a Save needs
// no new memory for the blob: it takes that of two versions ago.
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
	// The new blob is written from its beginning, so padding and parts of the old version do not
	// matter.
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

// joinBlob makes a blob of records. It copies them: they may be in memory of an old slot, which is
// forgotten later, or of a message.
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

// splitBlob returns the records of a blob, which may be padded, by part. The records are memory of
// the blob. Their capacity ends with them, so none reaches into the next.
func splitBlob(b []byte) (map[int][]byte, error) {
	if len(b) < blobHead {
		return nil, errRecord
	}
	// The blob's own length decides where it ends. It was padded with zeros to k chunks, and these
	// would be a record of length 0.
	n := binary.LittleEndian.Uint64(b)
	if n < blobHead || n > uint64(len(b)) {
		return nil, errRecord
	}
	records := make(map[int][]byte)
	for b = b[blobHead:n]; len(b) > 0; {
		if len(b) < headLen {
			return nil, errRecord
		}
		// A length of less than a header would keep the loop from advancing.
		length := binary.LittleEndian.Uint64(b[8:])
		if length < headLen || length > uint64(len(b)) {
			return nil, errRecord
		}
		records[int(binary.LittleEndian.Uint32(b))] = b[:length:length]
		b = b[length:]
	}
	return records, nil
}

// A saved is one variable of a record. It also travels to another rank, in the reply to a Load.
type saved struct {
	Kind uint32
	Data []byte
}

// variablesOf returns the variables of records, by name. If two records have a variable of the same
// name, the last one counts. This happens if the program has protected a Once variable anew without
// Once: the blob of Once variables still has it.
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
			// The first two comparisons keep the sum from overflowing.
			if name > uint64(len(b)) || data > uint64(len(b)) || uint64(padded(int(name)))+uint64(padded(int(data))) > uint64(len(b)) {
				return nil, errRecord
			}
			at := padded(int(name))
			vars[string(b[:name])] = saved{kind, b[at:][:data:data]}
			b = b[at+padded(int(data)):]
		}
		// A count that is too low would else hide variables.
		if len(b) > 0 {
			return nil, errRecord
		}
	}
	return vars, nil
}

// restore sets all variables from the records, or none. A program that gets an error still has the
// values of before in all variables, and can Load instead. Variables in the records that are not
// protected are ignored, so a later version of the program may protect fewer.
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
