package mpicx

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/mpicx/go-mpicx/internal/diagnosis"
	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/ledger"
	"github.com/mpicx/go-mpicx/internal/wire"
)

// A Failure is one error that a rank has told the others.
type Failure struct {
	Rank    int       // who failed, in the communicator of the error
	Code    int       // what SignalError was given, the Class of an MPIError, or another error's ErrorCode() int; else 0
	Message string    // the error's text, at most MaxMessage bytes of it
	Origin  string    // where it was signalled: function, file and line
	Time    time.Time // when, by the clock of Rank
	// Sentinels are the texts of the registered errors that errors.Is finds in it, a line each: see
	// RegisterError.
	Sentinels string

	// types has the values that errors.As finds in it, those of registered types: for each its type
	// and its gob. The gob is empty if it is not sent; then there is the reason instead of the
	// type.
	types string
	// returnedIn is the number of this round if the rank has returned the error of the round
	// before from a Try around the one that has dealt with it, else 0.
	returnedIn uint64
	path       string // the Try calls on the communicator that enclose it: see ledger.Scope.Path; varints
}

// encodePath returns the path of a Try call in the form in which a Failure stores it.
func encodePath(path []int) string {
	var b []byte
	for _, k := range path {
		b = binary.AppendUvarint(b, uint64(k))
	}
	return string(b)
}

// decodePath is the inverse of encodePath.
func decodePath(s string) (path []int) {
	for d := wire.NewReader([]byte(s)); d.Len() > 0; {
		path = append(path, int(d.Uvarint()))
	}
	return path
}

// A meaning is what a verdict says. All ranks of a process share it.
type meaning struct {
	// failures are those of the latest era or, of a corruption, those of ranks that unwound. The
	// era is the first number of a path. It is -1 if no failure has a path, and failures without
	// one are of any era.
	failures   []Failure
	refersBack bool // some of them only refer to the previous round
	era        int
	place      []int // the path of the innermost Try call that encloses the failures
}

// meaningOf returns what a verdict says.
func meaningOf(v *errchan.Verdict) *meaning {
	return v.Meaning(func(v *errchan.Verdict) any {
		m := &meaning{failures: make([]Failure, 0, len(v.Reports)), era: -1}
		for _, r := range v.Reports {
			if r.Corrupt != v.Corrupt {
				continue
			}
			f := decodeFailure(r)
			path := decodePath(f.path)
			switch {
			case len(path) == 0 || v.Corrupt:
			case path[0] < m.era:
				continue
			case path[0] > m.era:
				m.era = path[0]
				m.failures = slices.DeleteFunc(m.failures, func(f Failure) bool { return f.path != "" })
			}
			m.failures = append(m.failures, f)
		}
		for i, f := range m.failures {
			path := decodePath(f.path)
			if i == 0 {
				m.place = path
			}
			m.refersBack = m.refersBack || f.returnedIn == v.Round && v.Round > 0
			same := 0
			for same < min(len(path), len(m.place)) && path[same] == m.place[same] {
				same++
			}
			m.place = m.place[:same]
		}
		if len(m.place) == 1 {
			m.place = nil
		}
		m.failures = slices.Clip(m.failures)
		return m
	}).(*meaning)
}

// MaxMessage is the maximum length in bytes of a Failure's text. A longer text is cut.
const MaxMessage = 1024

func (f Failure) String() string { return fmt.Sprintf("rank %d%s", f.Rank, f.text()) }

// text returns the part of String after the rank.
func (f Failure) text() (text string) {
	if f.Code != 0 && !strings.HasPrefix(f.Message, "mpicx: ") { // an MPIError's text says more than its class
		text = fmt.Sprintf(" (code %d)", f.Code)
	}
	if f.Message != "" {
		text += ": " + f.Message
	}
	for _, name := range f.unregistered() {
		text += fmt.Sprintf(" (this rank has not registered %q)", name)
	}
	return text
}

// unregistered returns what the rank that failed has registered and this one has not: texts of
// sentinels, and types.
func (f Failure) unregistered() (names []string) {
	if f.Sentinels == "" && f.types == "" {
		return nil
	}
	for text := range strings.SplitSeq(f.Sentinels, "\n") {
		if _, found := findSentinel(*sentinels.Load(), text); !found && text != "" {
			names = append(names, text)
		}
	}
	for name, value := range f.eachType() {
		if value != "" && !slices.ContainsFunc(*errorTypes.Load(), func(t errorType) bool { return t.name == name }) {
			names = append(names, name)
		}
	}
	return names
}

// list has each text once, with all ranks that have it.
func list(failures []Failure) string {
	const most = 4
	var groups diagnosis.Groups
	for _, f := range failures {
		groups.Add(f.Rank, f.text())
	}
	var parts []string
	more := len(failures) // that are in no part
	for i, g := range groups.All {
		if i == most && len(groups.All) > most+1 {
			parts = append(parts, fmt.Sprintf("and %d more", more))
			break
		}
		parts = append(parts, diagnosis.Name(slices.Compact(g.Ranks))+g.Text)
		more -= len(g.Ranks)
	}
	return strings.Join(parts, "; ")
}

// newFailure returns the Failure for err, which the caller's caller signals.
func newFailure(err error, skip int) Failure {
	f := Failure{Message: cut(err.Error(), MaxMessage), Time: time.Now(), Origin: origin(skip + 1)}
	var coder interface{ ErrorCode() int }
	if errors.As(err, &coder) {
		f.Code = coder.ErrorCode()
	}
	f.Sentinels, f.types = sentinelsIn(err), typesIn(err)
	return f
}

// origin returns the first caller, from skip on, that is neither in this package nor in one
// below it. While a panic unwinds, this is the function that panicked.
func origin(skip int) string {
	pcs := make([]uintptr, 16)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(skip+2, pcs)])
	for {
		frame, more := frames.Next()
		own := (strings.HasPrefix(frame.Function, ownPackage) || strings.HasPrefix(frame.Function, builtOnIt)) && !strings.HasSuffix(frame.File, "_test.go") ||
			strings.HasPrefix(frame.Function, "runtime.")
		if frame.Function != "" && !own || !more {
			name := frame.Function[strings.LastIndexByte(frame.Function, '/')+1:]
			return fmt.Sprintf("%s %s:%d", name, filepath.Base(frame.File), frame.Line)
		}
	}
}

const (
	ownPackage = "github.com/mpicx/go-mpicx/mpicx."
	builtOnIt  = "github.com/mpicx/go-mpicx/mpicx/" // recovery, for example
)

// cut shortens s to at most n bytes, between characters, and makes it valid
// UTF-8.
func cut(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= n {
		return s
	}
	const dots = "…"
	n -= len(dots)
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + dots
}

// encode returns f as a report's data: code, time in Unix nanoseconds, returnedIn, path, origin,
// sentinels and types, each after its length, and the message. The report has the rank.
func (f Failure) encode() []byte {
	b := binary.AppendVarint(nil, int64(f.Code))
	b = binary.AppendVarint(b, f.Time.UnixNano())
	b = binary.AppendUvarint(b, f.returnedIn)
	b = wire.AppendBytes(b, f.path)
	b = wire.AppendBytes(b, cut(f.Origin, MaxMessage))
	b = wire.AppendBytes(b, f.Sentinels)
	b = wire.AppendBytes(b, f.types)
	return append(b, f.Message...)
}

// decodeFailure is the inverse of encode. The data are from another rank and may be anything;
// if they are no Failure, the result says so.
func decodeFailure(r errchan.Report) Failure {
	d := wire.NewReader(r.Data)
	code, at, returnedIn := d.Varint(), d.Varint(), d.Uvarint()
	path, where, sentinels, types, message := d.Text(), d.Text(), d.Text(), d.Text(), d.Rest()
	if d.End() == nil {
		return Failure{
			Rank: r.Rank, Code: int(code), Time: time.Unix(0, at), returnedIn: returnedIn, path: path,
			Origin: where, Message: cut(message, MaxMessage), Sentinels: sentinels, types: types,
		}
	}
	return Failure{Rank: r.Rank, Message: "its error channel got a message that makes no sense"}
}

// expanded returns the failures of e, in which each failure that only refers to the previous round
// is replaced by the failures of that round.
func (m *meaning) expanded(e *ledger.Error) []Failure {
	prev := e.Comm.Previous()
	if !m.refersBack || prev == nil {
		return m.failures
	}
	before, ok := prev.Face.(*PropagatedError)
	if !ok {
		return m.failures
	}
	refersBack := func(f Failure) bool { return f.returnedIn == e.Verdict.Round }
	all := slices.Concat(before.Failures, slices.DeleteFunc(slices.Clone(m.failures), refersBack))
	slices.SortStableFunc(all, func(a, b Failure) int { return a.Rank - b.Rank })
	return all
}

// sentinels are the errors that errors.Is finds at every rank, in the order of their texts, which
// differ. The slice is replaced, and not changed: whoever reads it may be called by errors.Is.
// registering is held while it is replaced.
var (
	sentinels   atomic.Pointer[[]error]
	registering sync.Mutex
)

func init() {
	sentinels.Store(&[]error{io.EOF, fs.ErrExist, fs.ErrNotExist, fs.ErrPermission, io.ErrUnexpectedEOF})
}

const (
	maxSentinels = 8   // of one failure
	maxSentinel  = 128 // bytes of a sentinel's text
)

// RegisterError has errors.Is find a sentinel in the error that all ranks get, such as a package's
// ErrDiverged, and not only at the rank where it was raised. Call it at all ranks before Run,
// typically in a var declaration or an init function. Ranks know a sentinel by its text. At a rank
// that has not registered it the error's text says so. Those of package io/fs, io.EOF and
// io.ErrUnexpectedEOF are registered.
//
// RegisterError panics if the sentinel is nil or can't be compared, if its text is no line of at
// most 128 bytes or that of another one, and for errors by which the library itself knows
// something: those of package context and of mpicx.
func RegisterError(sentinel error) {
	text := ""
	if sentinel != nil {
		text = sentinel.Error()
	}
	registering.Lock()
	defer registering.Unlock()
	all := *sentinels.Load()
	i, found := findSentinel(all, text)
	switch {
	case sentinel == nil, !reflect.ValueOf(sentinel).Comparable():
		panic(fmt.Sprintf("mpicx: RegisterError: %#v, expected an error that can be compared", sentinel))
	case len(text) > maxSentinel, strings.Contains(text, "\n"):
		panic(fmt.Sprintf("mpicx: RegisterError: %q has %d bytes, expected a line of %d at most", text, len(text), maxSentinel))
	case isOurs(sentinel):
		panic(fmt.Sprintf("mpicx: RegisterError: %q, expected an error of the program", text))
	case found && all[i] != sentinel:
		panic(fmt.Sprintf("mpicx: RegisterError: two errors have the text %q, expected different ones", text))
	case !found:
		all = slices.Insert(slices.Clone(all), i, sentinel)
		sentinels.Store(&all)
	}
}

func findSentinel(all []error, text string) (i int, found bool) {
	return slices.BinarySearchFunc(all, text, func(e error, text string) int { return strings.Compare(e.Error(), text) })
}

// isOurs says whether the library looks for a sentinel itself.
func isOurs(sentinel error) bool {
	return sentinel == context.Canceled || sentinel == context.DeadlineExceeded || sentinel == errors.ErrUnsupported || strings.HasPrefix(sentinel.Error(), "mpicx: ")
}

// sentinelsIn returns the texts of those sentinels that errors.Is finds in err, a line each.
func sentinelsIn(err error) string {
	var texts []string
	for _, s := range *sentinels.Load() {
		if len(texts) < maxSentinels && errors.Is(err, s) {
			texts = append(texts, s.Error())
		}
	}
	return strings.Join(texts, "\n")
}

// areSentinel says whether one of the failures is target, which is registered.
func areSentinel(failures []Failure, target error) bool {
	known := reflect.ValueOf(target).Comparable() && slices.Contains(*sentinels.Load(), target)
	return known && slices.ContainsFunc(failures, func(f Failure) bool { return slices.Contains(strings.Split(f.Sentinels, "\n"), target.Error()) })
}

// An errorType is a registered type of errors.
type errorType struct {
	name   string
	target reflect.Type // *E
	// encode returns the gob of the error of the type that errors.As finds in err, if there is one.
	encode func(err error) (value []byte, found bool, bad error)
	// decode sets what target points to, if value is a gob of the type.
	decode func(value string, target any) bool
}

// errorTypes are the registered types. The slice is replaced, and not changed, as sentinels is.
var errorTypes atomic.Pointer[[]errorType]

func init() { errorTypes.Store(&[]errorType{}) }

// RegisterErrorType has errors.As find an error of type E, such as *DivergedError with the number
// of the step, in the error that all ranks get. It is sent by encoding/gob, so the other ranks get
// its exported fields, and the rank where it was raised finds the error itself. If several ranks
// have raised one, all find that of the lowest. Call RegisterErrorType at all ranks before Run,
// typically in an init function. At a rank that has not registered E the error's text says so.
//
// If gob does not take the error, or needs more than 4096 bytes, errors.As finds it only where it
// was raised, and %+v says why.
//
// RegisterErrorType panics if E is an interface, a type of package mpicx, or has the name of
// another one, as types inside of functions may.
func RegisterErrorType[E error]() {
	t := reflect.TypeFor[E]()
	switch {
	case t.Kind() == reflect.Interface:
		panic(fmt.Sprintf("mpicx: RegisterErrorType: %v is an interface, expected the type of an error", t))
	case strings.HasPrefix(pointedTo(t).PkgPath()+"/", builtOnIt):
		panic(fmt.Sprintf("mpicx: RegisterErrorType: %v, expected an error of the program", t))
	}
	registering.Lock()
	defer registering.Unlock()
	registerType[E]()
}

func registerType[E error]() {
	t, elem := reflect.TypeFor[E](), pointedTo(reflect.TypeFor[E]())
	name := elem.PkgPath() + "." + elem.Name()
	if t != elem {
		name = "*" + name
	}
	all, target := *errorTypes.Load(), reflect.TypeFor[*E]()
	switch i := slices.IndexFunc(all, func(t errorType) bool { return t.name == name }); {
	case i < 0:
		all = append(slices.Clip(all), errorType{name, target, encodeError[E], decodeError[E]})
		errorTypes.Store(&all)
	case all[i].target != target:
		panic(fmt.Sprintf("mpicx: RegisterErrorType: two types have the name %s, expected different ones", name))
	}
}

// pointedTo returns the type that a pointer of type t points to, or t if that is no pointer's type.
func pointedTo(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

func encodeError[E error](err error) (value []byte, found bool, bad error) {
	e, found := errors.AsType[E](err)
	if !found {
		return nil, false, nil
	}
	defer func() {
		if v := recover(); v != nil { // gob's, of a nil pointer, or a GobEncode's
			bad = fmt.Errorf("panic: %v", v)
		}
	}()
	var b bytes.Buffer
	bad = gob.NewEncoder(&b).Encode(e)
	return b.Bytes(), true, bad
}

func decodeError[E error](value string, target any) (ok bool) {
	defer func() {
		if recover() != nil { // a GobDecode's: value may be anything
			ok = false
		}
	}()
	var e E
	if gob.NewDecoder(strings.NewReader(value)).Decode(&e) != nil {
		return false
	}
	*target.(*E) = e
	return true
}

// maxTypes is the most bytes of the values of one failure.
const maxTypes = 4096

// typesIn returns the types of a Failure for err.
func typesIn(err error) string {
	var b []byte
	for _, t := range *errorTypes.Load() {
		value, found, bad := t.encode(err)
		if found && bad == nil && len(b)+len(value) > maxTypes {
			bad = fmt.Errorf("its gob has %d bytes, expected %d at most", len(value), maxTypes)
		}
		switch {
		case bad != nil && len(b) <= maxTypes:
			b = wire.AppendBytes(b, cut(t.name+": "+bad.Error(), MaxMessage/2))
			b = wire.AppendBytes(b, "")
		case found && bad == nil:
			b = wire.AppendBytes(b, t.name)
			b = wire.AppendBytes(b, value)
		}
	}
	return string(b)
}

// eachType goes through f.types, which may be anything.
func (f Failure) eachType() iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for d := wire.NewReader([]byte(f.types)); d.Len() > 0; {
			name, value := d.Text(), d.Text()
			if d.Failed() || !yield(name, value) {
				return
			}
		}
	}
}

// findType sets what target points to, if that is of a registered type of which a failure has an
// error, and returns the index of the first such failure, or -1.
func findType(failures []Failure, target any) int {
	for _, t := range *errorTypes.Load() {
		if t.target != reflect.TypeOf(target) {
			continue
		}
		return slices.IndexFunc(failures, func(f Failure) bool {
			for name, value := range f.eachType() {
				if name == t.name && t.decode(value, target) {
					return true
				}
			}
			return false
		})
	}
	return -1
}
