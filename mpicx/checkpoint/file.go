package checkpoint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// A file has the part of one rank in one version. A header of 68 bytes ends with its checksum. The two
// records of the part follow, first that of Once variables, in blocks of 1 MiB; the last block may be
// shorter. Each block is followed by its checksum. This also covers the header's checksum and the
// block's number, so a block of another file or from another place is detected. Checksums are CRC-32C,
// numbers little-endian.
//
//	0  "MPICXCKP"       24  stamp of the Save   48  length of the first record
//	8  format: 1        32  version             56  length of the second
//	12 size of a block  40  part                64  checksum
//	16 run              44  number of parts

const (
	magic      = "MPICXCKP"
	format     = 1
	blockSize  = 1 << 20
	headerSize = 68
)

// ErrFile is the error of a file that is damaged, or that this package has not written.
var ErrFile = errors.New("checkpoint: bad file")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A header describes the contents of a file.
type header struct {
	stored
	lengths [2]uint64
}

func (h *header) bytes() []byte {
	le := binary.LittleEndian
	b := append(make([]byte, 0, headerSize), magic...)
	b = le.AppendUint32(b, format)
	b = le.AppendUint32(b, blockSize)
	b = le.AppendUint64(b, h.Key.Run)
	b = le.AppendUint64(b, h.Key.Origin)
	b = le.AppendUint64(b, uint64(h.Key.Version))
	b = le.AppendUint32(b, uint32(h.Part))
	b = le.AppendUint32(b, uint32(h.Key.Parts))
	b = le.AppendUint64(b, h.lengths[0])
	b = le.AppendUint64(b, h.lengths[1])
	return le.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// size returns the size of the whole file.
func (h *header) size() int64 {
	payload := h.lengths[0] + h.lengths[1]
	return int64(headerSize + payload + (payload+blockSize-1)/blockSize*4)
}

func readHeader(r io.Reader) (h header, sum uint32, err error) {
	b := make([]byte, headerSize)
	if n, err := io.ReadFull(r, b); err != nil {
		return h, 0, fmt.Errorf("%w: header of %d bytes, expected %d: %w", ErrFile, n, headerSize, err)
	}
	le := binary.LittleEndian
	sum = le.Uint32(b[64:])
	switch {
	case string(b[:8]) != magic:
		return h, 0, fmt.Errorf("%w: it begins with %q, expected %q", ErrFile, b[:8], magic)
	case crc32.Checksum(b[:64], castagnoli) != sum:
		return h, 0, fmt.Errorf("%w: the checksum of the header differs", ErrFile)
	case le.Uint32(b[8:]) != format || le.Uint32(b[12:]) != blockSize:
		return h, 0, fmt.Errorf("%w: format %d with blocks of %d bytes, expected %d and %d", ErrFile, le.Uint32(b[8:]), le.Uint32(b[12:]), format, blockSize)
	}
	k := key{Version: int(le.Uint64(b[32:])), Run: le.Uint64(b[16:]), Origin: le.Uint64(b[24:]), Parts: int(le.Uint32(b[44:]))}
	h = header{stored{k, int(le.Uint32(b[40:]))}, [2]uint64{le.Uint64(b[48:]), le.Uint64(b[56:])}}
	const most = 1 << 60
	if h.lengths[0] > most || h.lengths[1] > most || k.Version < 0 || h.Part >= k.Parts {
		return h, 0, fmt.Errorf("%w: version %d, part %d of %d, records of %v bytes", ErrFile, k.Version, h.Part, k.Parts, h.lengths)
	}
	return h, sum, nil
}

// blockSum returns the checksum of a block.
func blockSum(header uint32, number uint64, block []byte) uint32 {
	b := binary.LittleEndian.AppendUint32(nil, header)
	b = binary.LittleEndian.AppendUint64(b, number)
	return crc32.Update(crc32.Checksum(b, castagnoli), castagnoli, block)
}

// writeFile writes the file of two records.
func writeFile(w io.Writer, f stored, records [2][]byte) error {
	h := header{f, [2]uint64{uint64(len(records[0])), uint64(len(records[1]))}}
	head := h.bytes()
	if _, err := w.Write(head); err != nil {
		return err
	}
	sum := binary.LittleEndian.Uint32(head[64:])
	payload := io.MultiReader(bytes.NewReader(records[0]), bytes.NewReader(records[1]))
	block := make([]byte, blockSize+4)
	for i := uint64(0); ; i++ {
		n, err := io.ReadFull(payload, block[:blockSize])
		if n == 0 {
			return nil
		}
		binary.LittleEndian.PutUint32(block[n:], blockSum(sum, i, block[:n]))
		if _, err := w.Write(block[:n+4]); err != nil {
			return err
		}
		if err != nil { // this was the last block
			return nil
		}
	}
}

// readFile is the inverse of writeFile. It refuses anything else, and does not allocate more memory
// than there are data.
func readFile(r io.Reader) (h header, records [2][]byte, err error) {
	h, sum, err := readHeader(r)
	if err != nil {
		return h, records, err
	}
	total := h.lengths[0] + h.lengths[1]
	var payload []byte
	block := make([]byte, min(total, blockSize)+4)
	for i := uint64(0); uint64(len(payload)) < total; i++ {
		n := min(total-uint64(len(payload)), blockSize)
		if _, err := io.ReadFull(r, block[:n+4]); err != nil {
			return h, records, fmt.Errorf("%w: block %d is cut off: %w", ErrFile, i, err)
		}
		if blockSum(sum, i, block[:n]) != binary.LittleEndian.Uint32(block[n:]) {
			return h, records, fmt.Errorf("%w: the checksum of block %d differs", ErrFile, i)
		}
		payload = append(payload, block[:n]...)
	}
	if n, err := r.Read(block[:1]); n > 0 || err != io.EOF {
		return h, records, fmt.Errorf("%w: there are bytes after its end", ErrFile)
	}
	at := h.lengths[0]
	records = [2][]byte{payload[:at:at], payload[at:]}
	if _, err := variablesOf(records[:]...); err != nil {
		return h, records, fmt.Errorf("%w: %w", ErrFile, err)
	}
	return h, records, nil
}
