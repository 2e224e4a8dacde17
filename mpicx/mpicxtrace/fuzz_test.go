package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/mpicx/go-mpicx/internal/observe"
)

// Whatever a file contains, mpicxtrace prints and draws it, or says why it cannot.
func FuzzFiles(f *testing.F) {
	const head = `{"format":"` + observe.Format + `","job":"a","machine":"m","host":"h","pid":1,"clock":"2026-11-23T15:00:00Z"}` + "\n"
	const fault = `{"t":50,"run":1,"rank":0,"event":"fault","comm":"world","round":1,"text":"boom"}` + "\n"
	f.Add([]byte(head))
	for _, line := range []string{
		`{"t":60,"run":1,"rank":1,"event":"notice","comm":"world","round":1}`,
		`{"t":60,"run":1,"rank":1,"event":"notice","comm":"world","round":1,"by":0}`,
		`{"t":60,"run":1,"rank":1,"event":"death"}`,
		`{"t":60,"run":1,"rank":1,"event":"death","by":-1}`,
		`{"t":60,"run":1,"rank":1,"event":"revoke"}`,
		`{"t":60,"run":1,"rank":1,"event":"replace","op":"Replace","comm":"world"}`,
		`{"t":60,"run":1,"rank":1,"event":"waited","id":1,"for":9223372036854775807,"op":"Barrier on world"}`,
		`{"t":-9223372036854775808,"run":1,"rank":9223372036854775807,"event":"wait","id":1}`,
		`{"t":60,"run":9223372036854775807,"rank":1,"event":"mark","text":"\u0000<"}`,
	} {
		f.Add([]byte(head + fault + line + "\n"))
		f.Add([]byte(head + line[:len(line)/2] + "\n" + fault + line))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "f.jsonl"), b, 0o600); err != nil {
			t.Fatal(err)
		}
		var stderr bytes.Buffer
		trace([]string{"-o", filepath.Join(dir, "t.json"), "-svg", filepath.Join(dir, "t.svg"), dir}, io.Discard, &stderr)
	})
}
