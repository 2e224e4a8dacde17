package checkpoint

import (
	"syscall"
	"unsafe"
)

// hugePage is the size of a huge page of most processors. If pages are larger, the advice does nothing.
const hugePage = 2 << 20

// expect says that memory will soon be written for the first time, all of it. With huge pages the system
// is then entered once for each 2 MiB instead of 4 KiB, which otherwise takes several times as long as
// copying the data there. The advice may be in vain, so its errors do not matter.
func expect(b []byte) []byte {
	all := b[:cap(b)]
	if len(all) < 2*hugePage {
		return b
	}
	skip := int(-uintptr(unsafe.Pointer(&all[0])) % hugePage)
	_ = syscall.Madvise(all[skip:][:(len(all)-skip)&^(hugePage-1)], syscall.MADV_HUGEPAGE)
	return b
}
