package element

import "unsafe"

// Bytes returns the memory of buf, never nil.
func Bytes[T any](buf []T) []byte {
	if len(buf) == 0 {
		return []byte{}
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(buf))), len(buf)*Size[T]())
}

// Slice is the inverse of Bytes, for memory that was allocated as a []T.
func Slice[T any](b []byte) []T {
	if len(b) == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/Size[T]())
}

// Size returns the number of bytes of an element.
func Size[T any]() int {
	var v T
	return int(unsafe.Sizeof(v))
}

// Parts splits a buffer by counts, whose sum is at most its length.
func Parts[T any](buf []T, counts []int) [][]byte {
	split := make([][]byte, len(counts))
	for i, n := range counts {
		split[i] = Bytes(buf[:n])
		buf = buf[n:]
	}
	return split
}

// EqualParts splits a buffer into n parts of the same length.
func EqualParts[T any](buf []T, n int) [][]byte {
	split := make([][]byte, n)
	for i := range split {
		length := len(buf) / n
		split[i] = Bytes(buf[i*length:][:length])
	}
	return split
}

// Overlap says whether two buffers have bytes in common.
func Overlap(a, b []byte) bool {
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	first, second := uintptr(unsafe.Pointer(&a[0])), uintptr(unsafe.Pointer(&b[0]))
	return first < second+uintptr(len(b)) && second < first+uintptr(len(a))
}
