package checkpoint

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
)

// manifestName is the file that says, in each directory, which versions have been saved: a Save
// ends when all manifests list its version. [Open] finds the data by the headers and checksums of
// their files. If files are missing, it knows by the manifest whether they are lost or have never
// been complete.
const manifestName = "MANIFEST.json"

// A manifest is the contents of this file.
type manifest struct {
	Format   int      `json:"format"`
	Run      string   `json:"run"` // hexadecimal
	Versions []listed `json:"versions"`
}

// A listed is a version in a manifest.
type listed struct {
	Version int      `json:"version"`
	Parts   int      `json:"parts"`
	Files   []string `json:"files"`
}

// A stored is a file of one part of a version. No two Saves write the same file. A process that was
// declared dead, but still writes, can therefore not replace a file of its successor.
type stored struct {
	Key  key
	Part int
}

const nameFormat = "v%d.%d-of-%d.%016x-%d.mpicx"

func (f stored) name() string {
	return fmt.Sprintf(nameFormat, f.Key.Version, f.Part, f.Key.Parts, f.Key.Run, f.Key.Origin)
}

func parseFileName(name string) (f stored, ok bool) {
	n, _ := fmt.Sscanf(name, nameFormat, &f.Key.Version, &f.Part, &f.Key.Parts, &f.Key.Run, &f.Key.Origin)
	return f, n == 5 && f.name() == name
}

// temporary begins the names of files that are being written.
func temporary(part int) string { return fmt.Sprintf(".writing-%d-", part) }

// writeNew writes a file under a temporary name, and renames it. Under its name there is always the
// old file or the whole new one, even after a crash.
func writeNew(dir, name string, part int, write func(io.Writer) error) error {
	f, err := os.CreateTemp(dir, temporary(part)+"*")
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	if err = cmp.Or(write(w), w.Flush(), f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, name))
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return err
	}
	return syncDir(dir)
}

// syncDir makes the name of a file durable. On Windows it does nothing: a flush needs a writable
// handle, and directories have none.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// prepareDir makes the directory, and removes files of this part that a crash has left half
// written.
func prepareDir(dir string, part int) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	left, err := filepath.Glob(filepath.Join(dir, temporary(part)+"*"))
	for _, name := range left {
		_ = os.Remove(name)
	}
	return err
}

// listDir returns the files in this rank's directory that the rank looks after. If all ranks see
// the same directory, these are the files of its share of the parts.
func (s *Store) listDir() (list []stored, err error) {
	entries, err := os.ReadDir(s.opts.dir)
	for _, e := range entries {
		if f, ok := parseFileName(e.Name()); ok && (!s.shared || f.Part%s.comm.Size() == s.comm.Rank()) {
			list = append(list, f)
		}
	}
	return list, err
}

// isGood says whether a file's header and size are good.
func isGood(dir string, f stored) bool {
	file, err := os.Open(filepath.Join(dir, f.name()))
	if err != nil {
		return false
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return false
	}
	h, _, err := readHeader(file)
	return err == nil && h.stored == f && h.size() == info.Size()
}

// readPart reads the records of a file that listDir has returned.
func readPart(dir string, s stored) (records [2][]byte, err error) {
	f, err := os.Open(filepath.Join(dir, s.name()))
	if err != nil {
		return records, err
	}
	defer f.Close()
	h, records, err := readFile(bufio.NewReader(f))
	if err == nil && h.stored != s {
		err = fmt.Errorf("%w: its name is of another Save", ErrFile)
	}
	return records, err
}

// readManifest returns the versions that a manifest lists. From a damaged manifest it returns the
// entries that can still be read; torn says that the manifest is damaged and has none.
func readManifest(dir string) (listed []key, torn bool, err error) {
	text, err := os.ReadFile(filepath.Join(dir, manifestName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	for _, name := range bytes.Split(text, []byte(`"`)) {
		if f, ok := parseFileName(string(name)); ok {
			listed = append(listed, f.Key)
		}
	}
	return slices.Compact(listed), len(listed) == 0 && !json.Valid(text), err
}

// list notes that all ranks have written their files of a version, in the manifest too. The
// manifest of a directory that not all ranks see has the files of this rank's part.
func (s *Store) list(k key) error {
	s.noteFiles(k)
	rank := s.comm.Rank()
	if s.shared && rank > 0 {
		return nil
	}
	m := manifest{Format: format, Run: fmt.Sprintf("%016x", s.run)}
	for _, k := range s.files {
		v := listed{Version: k.Version, Parts: k.Parts}
		for part := range k.Parts {
			if s.shared || part == rank%k.Parts {
				v.Files = append(v.Files, stored{k, part}.name())
			}
		}
		m.Versions = append(m.Versions, v)
	}
	return writeNew(s.opts.dir, manifestName, rank, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "\t")
		return e.Encode(m)
	})
}
