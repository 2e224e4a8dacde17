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
}

// next reads the next line that is neither blank nor a comment. It returns
// io.EOF at the end.
func (l *lines) next() error {
	for {
		if err := l.readLine(); err != nil {
			return err
		}
		if len(l.text) > 0 && l.text[0] != '%' {
			return nil
		}
	}
}

// readLine reads the next line; of a long comment, only its beginning. It
// returns io.EOF at the end.
func (l *lines) readLine() error {
	text, err := l.in.ReadSlice('\n')
	if err == io.EOF && len(text) == 0 {
		return io.EOF
	}
	l.line++
	l.text = bytes.TrimSpace(text)
	if errors.Is(err, bufio.ErrBufferFull) {
		if !bytes.HasPrefix(l.text, []byte("%")) {
			return l.errorHere(fmt.Sprintf("a line shorter than %d bytes", maxLine))
		}
		l.text = []byte("%") // no longer in the buffer
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = l.in.ReadSlice('\n')
		}
	}
	if err != nil && err != io.EOF { // a last line may lack its end
		return fmt.Errorf("%s:%d: %w", l.file, l.line, err)
	}
	return nil
}

func (l *lines) errorAt(line int, found, expected string) *FormatError {
	return &FormatError{File: l.file, Line: line, Found: found, Expected: expected}
}

// errorHere says what is expected instead of the line.
func (l *lines) errorHere(expected string) *FormatError {
	return l.errorAt(l.line, quote(l.text), expected)
}

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
