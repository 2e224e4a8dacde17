package sparse

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
)

// maxLine bounds the lines that are not comments: they have fewer bytes.
const maxLine = 256 << 10

// lines reads a text line by line.
type lines struct {
	file string
	in   *bufio.Reader // its buffer holds maxLine bytes
	line int           // line number of text, from 1
	text []byte        // the line without surrounding blanks, valid until the next line is read
	err  error         // the first error; nothing is read after it
}

// next reads the next line that is neither blank nor a comment. It returns false at the end, and
// after an error.
func (l *lines) next() bool {
	for l.readLine() {
		if len(l.text) > 0 && l.text[0] != '%' {
			return true
		}
	}
	return false
}

// readLine reads the next line; of a long comment, only its beginning. It returns false at the
// end, and after an error.
func (l *lines) readLine() bool {
	if l.err != nil {
		return false
	}
	text, err := l.in.ReadSlice('\n')
	if err == io.EOF && len(text) == 0 {
		return false
	}
	l.line++
	l.text = bytes.TrimSpace(text)
	if errors.Is(err, bufio.ErrBufferFull) {
		if !bytes.HasPrefix(l.text, []byte("%")) {
			l.wrong(fmt.Sprintf("a line shorter than %d bytes", maxLine))
			return false
		}
		l.text = []byte("%") // no longer in the buffer
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = l.in.ReadSlice('\n')
		}
	}
	if err != nil && err != io.EOF { // a last line may lack its end
		l.err = fmt.Errorf("%s:%d: %w", l.file, l.line, err)
	}
	return l.err == nil
}

// wrongAt notes a [*FormatError], unless there was an error before.
func (l *lines) wrongAt(line int, found, expected string) {
	if l.err == nil {
		l.err = &FormatError{File: l.file, Line: line, Found: found, Expected: expected}
	}
}

// wrong notes what is expected instead of the line.
func (l *lines) wrong(expected string) { l.wrongAt(l.line, quote(l.text), expected) }

// quote returns text in quotes, cut if it is long.
func quote(text []byte) string {
	const most = 60
	if len(text) > most {
		return strconv.Quote(string(text[:most])) + "…"
	}
	return strconv.Quote(string(text))
}

// cutInt cuts an unsigned number and the blanks after it from the beginning of text.
func cutInt(text []byte) (n int64, rest []byte, ok bool) {
	k := 0
	for k < len(text) && '0' <= text[k] && text[k] <= '9' {
		if n > (math.MaxInt64-9)/10 {
			return 0, text, false
		}
		n = 10*n + int64(text[k]-'0')
		k++
	}
	end := k
	for k < len(text) && (text[k] == ' ' || text[k] == '\t') {
		k++
	}
	return n, text[k:], end > 0 && (k > end || k == len(text))
}

// parseReal parses a finite number: digits with a sign and, if it is not an integer, a decimal
// point and an exponent after an E or D.
func parseReal(text []byte, integer bool) (v float64, ok bool) {
	for k, c := range text {
		switch {
		case '0' <= c && c <= '9' || c == '+' || c == '-':
		case !integer && (c == '.' || c == 'e' || c == 'E'):
		case !integer && (c == 'd' || c == 'D'):
			text = bytes.Clone(text)
			text[k] = 'e'
		default:
			return 0, false // ParseFloat also takes hexadecimal numbers, "inf", "nan"
		}
	}
	v, err := strconv.ParseFloat(string(text), 64)
	return v, err == nil
}
