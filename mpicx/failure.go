package mpicx

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mpicx/go-mpicx/internal/errchan"
)

// A Failure is one error that a rank has told the others.
type Failure struct {
	Rank    int       // who failed, in the communicator of the error
	Code    int       // what SignalError was given, the Class of an MPIError, or another error's ErrorCode() int; else 0
	Message string    // the error's text, at most MaxMessage bytes of it
	Origin  string    // where it was signalled: function, file and line
	Time    time.Time // when, by the clock of Rank

	path string // the Try calls on the communicator that enclose it: see ledger.Scope.Path; varints
}

// MaxMessage is the maximum length in bytes of a Failure's text. A longer text is cut.
const MaxMessage = 1024

func (f Failure) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "rank %d", f.Rank)
	if f.Code != 0 && !strings.HasPrefix(f.Message, "mpicx: ") { // an MPIError's text says more than its class
		fmt.Fprintf(&b, " (code %d)", f.Code)
	}
	if f.Message != "" {
		fmt.Fprintf(&b, ": %s", f.Message)
	}
	return b.String()
}

func list(failures []Failure) string {
	const most = 4
	var parts []string
	for i, f := range failures {
		if i == most && len(failures) > most+1 {
			parts = append(parts, fmt.Sprintf("and %d more", len(failures)-most))
			break
		}
		parts = append(parts, f.String())
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

// encode returns f as a report's data: code, time in Unix nanoseconds, path and origin, each
// after its length, and the message. The report has the rank.
func (f Failure) encode() []byte {
	where := cut(f.Origin, MaxMessage)
	b := binary.AppendVarint(nil, int64(f.Code))
	b = binary.AppendVarint(b, f.Time.UnixNano())
	b = binary.AppendUvarint(b, uint64(len(f.path)))
	b = append(b, f.path...)
	b = binary.AppendUvarint(b, uint64(len(where)))
	b = append(b, where...)
	return append(b, f.Message...)
}

// decodeFailure is the inverse of encode. The data are from another rank and may be anything;
// if they are no Failure, the result says so.
func decodeFailure(r errchan.Report) Failure {
	d := errchan.NewReader(r.Data)
	code, at := d.Varint(), d.Varint()
	path, where, message := d.Text(), d.Text(), d.Rest()
	if d.End() == nil {
		return Failure{
			Rank: r.Rank, Code: int(code), Time: time.Unix(0, at), path: path,
			Origin: where, Message: cut(message, MaxMessage),
		}
	}
	return Failure{Rank: r.Rank, Message: "its error channel got a message that makes no sense"}
}

// failuresOf returns the failures of a verdict. Of a corruption it returns only the failures
// of ranks that unwound.
func failuresOf(v *errchan.Verdict) []Failure {
	return v.Meaning(func(v *errchan.Verdict) any {
		failures := make([]Failure, 0, len(v.Reports))
		for _, r := range v.Reports {
			if r.Corrupt == v.Corrupt {
				failures = append(failures, decodeFailure(r))
			}
		}
		return failures
	}).([]Failure)
}
