package timeline

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// A File has the contents of a file: its lines ordered by their times, and lines of the same
// time in the order of the file.
type File struct {
	Name string
	Head
	Lines []Line
}

// ReadDir reads all files in a directory. It ignores files of other formats.
func ReadDir(dir string) ([]File, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all []File
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		if filepath.Ext(name) != ".jsonl" {
			continue
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if f, ok := Read(b); ok {
			f.Name = name
			all = append(all, f)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no timeline, expected files that begin with {\"format\":%q", dir, Format)
	}
	return all, nil
}

// Read reads a file, and skips text that is not a line. It returns false if there is no Head.
func Read(b []byte) (f File, ok bool) {
	first, rest, _ := bytes.Cut(b, []byte("\n"))
	if json.Unmarshal(first, &f.Head) != nil || f.Format != Format {
		return f, false
	}
	for text := range bytes.Lines(rest) {
		var l Line
		if json.Unmarshal(text, &l) == nil && l.isWhole() {
			f.Lines = append(f.Lines, l)
		}
	}
	slices.SortStableFunc(f.Lines, func(a, b Line) int { return cmp.Compare(a.T, b.T) })
	return f, true
}

// isWhole says whether the line has all fields that its kind needs.
func (l *Line) isWhole() bool {
	switch l.Event {
	case "":
		return false
	case Death, Notice, Revoke:
		if l.By == nil {
			return false
		}
	case Replace:
		if l.As == nil {
			return false
		}
	}
	return l.Run > 0 && l.Rank >= 0
}
