package main

import (
	"bytes"
	"compress/gzip"
	"flag"
	"log"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("genmatrices: ")
	dir := flag.String("dir", "../../testdata/matrices", "the directory to write to, which has to exist")
	flag.Parse()
	if err := write(*dir); err != nil {
		log.Fatal(err)
	}
}

// write writes all files into dir.
func write(dir string) error {
	files, err := generate()
	if err != nil {
		return err
	}
	for name, text := range files {
		if strings.HasSuffix(name, ".gz") {
			if text, err = compress(text); err != nil {
				return err
			}
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o666); err != nil {
			return err
		}
	}
	return nil
}

// compress returns text in gzip format, without the time.
func compress(text []byte) ([]byte, error) {
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	if _, err := z.Write(text); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}
