package mpicx

import (
	"fmt"
	"strings"
	"unsafe"
)

// In place (MPI_IN_PLACE): an operation may use one buffer for both send and recv. If they have
// the same length, they are the same slice. If one is a part of the other, it is the part at
// its rank's place: in Gather, the root's send is recv[root*len(send):][:len(send)]. Any other
// overlap of buffers is an *MPIError.

// inPlace checks that part and whole share no memory, or that part begins at whole[at] for one
// of the given places. It says whether they share memory.
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

// same is inPlace for buffers of the same length.
func same[T any](k *check, send, recv []T) bool { return inPlace(k, "recv", recv, "send", send, 0) }
