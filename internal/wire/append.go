package wire

import "encoding/binary"

// AppendBool appends v as a byte, 0 or 1.
func AppendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

// AppendBytes appends the length of s as a varint, and s.
func AppendBytes[S []byte | string](b []byte, s S) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// AppendRanks appends the number of ranks and the ranks, all as varints.
func AppendRanks(b []byte, ranks []int) []byte {
	b = binary.AppendUvarint(b, uint64(len(ranks)))
	for _, r := range ranks {
		b = binary.AppendUvarint(b, uint64(r))
	}
	return b
}
