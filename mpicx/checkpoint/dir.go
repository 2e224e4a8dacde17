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
	"strings"
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
// declared dead, but still writes, can therefore not replace a file of its successor. A name also
// tells two Saves of the same version apart, of one job by the stamp, and of two jobs by the run.
// So a Save never overwrites a file on which an older version depends.
type stored struct {
	Key  key
	Part int
}

const nameFormat = "v%d.%d-of-%d.%016x-%d.mpicx"

func (f stored) name() string {
	return fmt.Sprintf(nameFormat, f.Key.Version, f.Part, f.Key.Parts, f.Key.Run, f.Key.Origin)
}

// Sscanf takes more than name writes, such as signs, or text at the end. A file whose name is not
// written the same way again is not ours, so prune must not remove it. Nor is one whose numbers no
// Save has: each rank makes a list of all Parts.
func parseFileName(name string) (f stored, ok bool) {
	n, _ := fmt.Sscanf(name, nameFormat, &f.Key.Version, &f.Part, &f.Key.Parts, &f.Key.Run, &f.Key.Origin)
	return f, n == 5 && f.name() == name && 0 <= f.Part && f.Part < f.Key.Parts && f.Key.Parts <= mostParts
}

// mostParts is more than the number of ranks that a job has.
const mostParts = 1 << 24

// temporary begins the names of files that are being written. The number is in the name so that a
// rank can remove what its predecessor has left, and nothing that another rank is writing now. The
// second dash keeps part 1 from being a beginning of part 12.
func temporary(part int) string { return fmt.Sprintf(".writing-%d-", part) }

// writeNew writes a file under a temporary name, and renames it. Under its name there is always the
// old file or the whole new one, even after a crash. The data are on the disk before the name is,
// or a crash of the machine could leave the name with less than the data. The name is on the disk
// before writeNew returns: the rank then tells the others that its file is there, and older files
// may be removed.
func writeNew(dir, name string, part int, write func(io.Writer) error) error {
	f, err := os.CreateTemp(dir, temporary(part)+"*")
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	// All four are called, whatever the first returns, so the file is closed in any case. The first
	// error is the cause.
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
// written. Another process may still write one of them, if it was declared dead and lives. Its
// rename then fails, which is an error of a rank that nobody asks any more.
func prepareDir(dir string, part int) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), temporary(part)) {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
	return err
}

// listDir returns the files in this rank's directory that the rank looks after. If all ranks see
// the same directory, these are the files of its share of the parts. The share goes by the part's
// number modulo the number of ranks, not by the rank's own part: files of a job with more ranks are
// looked after, too.
func (s *Store) listDir() (list []stored, err error) {
	entries, err := os.ReadDir(s.opts.dir)
	for _, e := range entries {
		if f, ok := parseFileName(e.Name()); ok && (!s.shared || f.Part%s.comm.Size() == s.comm.Rank()) {
			list = append(list, f)
		}
	}
	return list, err
}

// isGood says whether a file's header and size are good. The blocks are not read, so a rank looks
// at a large directory in little time. Their checksums are checked when a version is chosen and its
// files are read: see Store.recover.
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

// readPart reads the records of a file that listDir has returned. The file may have changed since
// listDir, and its name proves nothing: what counts is the header, and the checksums of all blocks
// cover that.
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
// entries that can still be read; torn says that the manifest is damaged and has none. It looks for
// names in quotation marks and needs no valid JSON. A name has the whole key, so the rest of the
// manifest is for people. A missing manifest is no error: the directory may be new.
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
// manifest of a directory that not all ranks see has the files of this rank's part. If ranks of one
// machine share a directory that others do not see, each replaces the manifest of the other. No
// matter which is last: they list the same versions, and only the files' parts differ.
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
