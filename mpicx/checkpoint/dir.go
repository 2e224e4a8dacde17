package checkpoint

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// manifestName is the file that says, for people and tools, which versions a shared directory
// has. [Open] goes by headers and checksums.
const manifestName = "MANIFEST.json"

// A manifest is what is in it.
type manifest struct {
	Format   int               `json:"format"`
	Run      string            `json:"run"` // hexadecimal
	Versions []manifestVersion `json:"versions"`
}

type manifestVersion struct {
	Version int      `json:"version"`
	Parts   int      `json:"parts"`
	Files   []string `json:"files"`
}

func fileName(version, part, parts int) string {
	return fmt.Sprintf("v%d.%d-of-%d.mpicx", version, part, parts)
}

func parseFileName(name string) (version, part, parts int, ok bool) {
	n, _ := fmt.Sscanf(name, "v%d.%d-of-%d.mpicx", &version, &part, &parts)
	return version, part, parts, n == 3 && fileName(version, part, parts) == name
}

// temporary begins the names of files that are being written.
func temporary(part int) string { return fmt.Sprintf(".writing-%d-", part) }

// writeNew writes a file beside its place, and renames it: under its name there is the old
// file or the whole new one, also after a crash.
func writeNew(dir, name string, part int, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(dir, temporary(part)+"*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	w := bufio.NewWriter(f)
	err = write(w)
	for _, next := range []func() error{w.Flush, f.Sync} {
		if err == nil {
			err = next()
		}
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), filepath.Join(dir, name)); err != nil {
		return err
	}
	return syncDir(dir)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// prepareDir makes the directory, and removes what a crash has left half written of this part.
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

// A stored is a file that is there, its header good and its size right.
type stored struct {
	Version, Part, Parts int
	Run, Stamp           uint64
}

// listDir returns the files whose parts this rank is to look at. What is damaged, or somebody
// else's, is left out.
func listDir(dir string, mine func(part int) bool) ([]stored, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var list []stored
	for _, e := range entries {
		version, part, parts, ok := parseFileName(e.Name())
		if !ok || !mine(part) {
			continue
		}
		if h, err := headerOf(filepath.Join(dir, e.Name())); err == nil && h.version == version && h.part == part && h.parts == parts {
			list = append(list, stored{version, part, parts, h.run, h.stamp})
		}
	}
	return list, nil
}

func headerOf(path string) (h header, err error) {
	f, err := os.Open(path)
	if err != nil {
		return h, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return h, err
	}
	if h, _, err = readHeader(f); err == nil && info.Size() != h.size() {
		err = fmt.Errorf("%w: %d bytes, expected %d", ErrFile, info.Size(), h.size())
	}
	return h, err
}

// readPart reads the records of a file that listDir has returned.
func readPart(dir string, s stored) (records [2][]byte, err error) {
	f, err := os.Open(filepath.Join(dir, fileName(s.Version, s.Part, s.Parts)))
	if err != nil {
		return records, err
	}
	defer f.Close()
	h, records, err := readFile(bufio.NewReader(f))
	if err == nil && (h.run != s.Run || h.stamp != s.Stamp) {
		err = fmt.Errorf("%w: another Save has written it meanwhile", ErrFile)
	}
	return records, err
}

// prune removes the files of parts that are this rank's in other versions than those to keep.
func prune(dir string, keep []int, mine func(part int) bool) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if version, p, _, ok := parseFileName(e.Name()); ok && mine(p) && !slices.Contains(keep, version) {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

func writeManifest(dir string, run uint64, versions []manifestVersion) error {
	return writeNew(dir, manifestName, 0, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "\t")
		return e.Encode(manifest{format, fmt.Sprintf("%016x", run), versions})
	})
}
