package mpicx

import (
	"fmt"
	"strings"
	"unsafe"
)

// In place (MPI_IN_PLACE): an operation may have one buffer for what a rank gives and what
// it gets. Where send and recv have the same length, they are the same slice then. Where one
// is a part of the other, it stands in its place there: in Gather, send of the root is
// recv[root*len(send):][:len(send)]. Buffers that overlap in any other way are an *MPIError.

// inPlace checks that part and whole share no memory, or that part begins with whole[at],
// for one of these. It says whether they share any.
func inPlace[T any](k *check, partName string, part []T, wholeName string, whole []T, at ...int) bool {
	size := uintptr(sizeOf[T]())
	p, w := uintptr(unsafe.Pointer(unsafe.SliceData(part))), uintptr(unsafe.Pointer(unsafe.SliceData(whole)))
	if k.err != nil || len(part) == 0 || len(whole) == 0 || p+uintptr(len(part))*size <= w || w+uintptr(len(whole))*size <= p {
		return false
	}
	places := make([]string, len(at))
	for i, first := range at {
		if p == w+uintptr(first)*size {
			return true
		}
		places[i] = fmt.Sprintf("%s[%d:]", wholeName, first)
	}
	k.that(false, ClassBuffer, "%s and %s overlap, expected no memory in common, or that %[1]s is %[3]s", partName, wholeName, strings.Join(places, " or "))
	return true
}

// same is inPlace where both buffers are of the same length.
func same[T any](k *check, send, recv []T) bool { return inPlace(k, "recv", recv, "send", send, 0) }
