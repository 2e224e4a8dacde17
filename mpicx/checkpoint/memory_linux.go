package checkpoint

import (
	"syscall"
	"unsafe"
)

// hugePage is the size of a huge page of most processors. If pages are larger, the advice does
// nothing.
const hugePage = 2 << 20

// expect returns b, and advises the system to use huge pages for it, up to its capacity: all of it
// will soon be written for the first time. The process then enters the system once for each 2 MiB.
// To enter it for each 4 KiB takes several times as long as copying the data. Nothing depends on
// the advice, so its errors do not matter.
func expect(b []byte) []byte {
	all := b[:cap(b)]
	if len(all) < 2*hugePage {
		return b
	}
	skip := int(-uintptr(unsafe.Pointer(&all[0])) % hugePage)
	_ = syscall.Madvise(all[skip:][:(len(all)-skip)&^(hugePage-1)], syscall.MADV_HUGEPAGE)
	return b
}
