package checkpoint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// A file has the part of one rank in one version. It begins with a rawHeader and the checksum of
// that. The two records of the part follow, first that of Once variables, in blocks of 1 MiB; the
// last block may be shorter. Each block is followed by its checksum. This also covers the header's
// checksum and the block's number, so a block of another file or from another place is detected.
// Checksums are CRC-32C, numbers little-endian. The header has the key and the part although the
// name has them, because a name can be changed, and a file copied under another name. By the
// lengths Open finds a file that was cut off, without reading it.
type rawHeader struct {
	Magic         [8]byte // "MPICXCKP"
	Format, Block uint32  // 1, and the size of a block
	Run, Stamp    uint64  // of the Save
	Version       uint64
	Part, Parts   uint32    // the number of the part, and how many there are
	Lengths       [2]uint64 // of the records
}

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
	k := h.Key
	b, _ := binary.Append(make([]byte, 0, headerSize), binary.LittleEndian, rawHeader{
		[8]byte([]byte(magic)), format, blockSize, k.Run, k.Origin, uint64(k.Version), uint32(h.Part), uint32(k.Parts), h.lengths,
	})
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// size returns the size of the whole file.
func (h *header) size() int64 {
	payload := h.lengths[0] + h.lengths[1]
	return int64(headerSize + payload + (payload+blockSize-1)/blockSize*4)
}

// readHeader returns a header that is fit to be used, and its checksum, which those of the blocks
// depend on. The checksum is compared before any other field is believed, except for the magic,
// which says whether there is a checksum at all. Then the numbers are checked, because a checksum
// that is right proves no good intent.
func readHeader(r io.Reader) (h header, sum uint32, err error) {
	b := make([]byte, headerSize)
	if n, err := io.ReadFull(r, b); err != nil {
		return h, 0, fmt.Errorf("%w: header of %d bytes, expected %d: %w", ErrFile, n, headerSize, err)
	}
	var raw rawHeader
	rest, _ := binary.Decode(b, binary.LittleEndian, &raw)
	sum = binary.LittleEndian.Uint32(b[rest:])
	switch {
	case string(raw.Magic[:]) != magic:
		return h, 0, fmt.Errorf("%w: it begins with %q, expected %q", ErrFile, raw.Magic[:], magic)
	case crc32.Checksum(b[:rest], castagnoli) != sum:
		return h, 0, fmt.Errorf("%w: the checksum of the header differs", ErrFile)
	case raw.Format != format || raw.Block != blockSize:
		return h, 0, fmt.Errorf("%w: format %d with blocks of %d bytes, expected %d and %d", ErrFile, raw.Format, raw.Block, format, blockSize)
	}
	h = header{stored{key{int(raw.Version), raw.Run, raw.Stamp, int(raw.Parts)}, int(raw.Part)}, raw.Lengths}
	// So that the sum of both lengths, and the size of the file, do not overflow.
	const most = 1 << 60
	if h.lengths[0] > most || h.lengths[1] > most || h.Key.Version < 0 || h.Part >= h.Key.Parts {
		return h, 0, fmt.Errorf("%w: version %d, part %d of %d, records of %v bytes", ErrFile, h.Key.Version, h.Part, h.Key.Parts, h.lengths)
	}
	return h, sum, nil
}

// blockSum returns the checksum of a block.
func blockSum(header uint32, number uint64, block []byte) uint32 {
	b := binary.LittleEndian.AppendUint32(nil, header)
	b = binary.LittleEndian.AppendUint64(b, number)
	return crc32.Update(crc32.Checksum(b, castagnoli), castagnoli, block)
}

// writeFile writes the file of two records. One block of memory is all that it needs beside the
// records, however large they are. The checksums are computed from the block that is written, so
// the records must not change meanwhile.
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
// than there are data. The lengths in the header are believed only block by block: a block must be
// there, with the right checksum, before room is made for the next.
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
	// Bytes after the end are no damage that a checksum finds, but the file is not what was
	// written.
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
